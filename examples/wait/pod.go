package main

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// whyNot returns why p is not ready, in the words of whoever is nearest to the
// cause, or nothing if it is ready.
func whyNot(p *corev1.Pod) string {
	var why []string
	for _, c := range p.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil {
			why = append(why, c.Name+": "+because(w.Reason, w.Message))
		} else if t := c.State.Terminated; t != nil {
			why = append(why, fmt.Sprintf("%s: %s, exit code %d", c.Name, because(t.Reason, t.Message), t.ExitCode))
		}
	}
	for _, condition := range p.Status.Conditions {
		switch {
		case condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue:
			return ""
		case condition.Status != corev1.ConditionTrue && len(why) == 0:
			why = append(why, because(condition.Reason, condition.Message))
		}
	}
	if len(why) == 0 {
		return "it is " + string(p.Status.Phase)
	}
	return strings.Join(why, ", ")
}

// because joins a reason and a message, of which either may be empty.
func because(reason, message string) string {
	if reason == "" || message == "" {
		return reason + message
	}
	return reason + " (" + message + ")"
}
