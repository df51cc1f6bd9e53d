package cluster

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-99a027e8/informer/informertest"
)

const (
	tick    = 400 * time.Millisecond // something changes each time
	nodes   = 3
	webPods = 5 // they become ready one after the other
	jobLife = 3 // jobs that are born while a job lives
)

// world is a small cluster that is always busy: the web server of a shop
// starts, a blog is up, and jobs come and go.
type world struct{ server *informertest.Server }

// fill creates what is there from the start.
func (w world) fill() error {
	replicas := int32(webPods)
	objects := []informertest.APIObject{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "blog"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "batch"}},
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"app": "web"}},
			Spec:       appsv1.DeploymentSpec{Replicas: &replicas},
		},
	}
	for i := range nodes {
		objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node(i)}})
	}
	for i := range webPods {
		objects = append(objects, starting(pod("shop", "web", i), "ContainerCreating", ""))
	}
	for i := range nodes {
		objects = append(objects, ready(pod("blog", "blog", i)))
	}
	for _, obj := range objects {
		if _, err := w.server.Create(obj); err != nil {
			return err
		}
	}
	return nil
}

// live changes the world, step by step, until ctx ends.
func (w world) live(ctx context.Context) error {
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
		if err := w.step(n); err != nil {
			return fmt.Errorf("the embedded world: %w", err)
		}
	}
}

// step is what happens at one tick: jobs go on, and every other time a pod of
// the web server does. The last of these needs a second try.
func (w world) step(n int) error {
	if err := w.jobs(n); err != nil || n%2 == 0 {
		return err
	}
	i := n / 2
	switch {
	case i < webPods-1:
		return w.update(ready(pod("shop", "web", i)))
	case i == webPods-1:
		return w.update(starting(pod("shop", "web", i), "ImagePullBackOff", `image "shop/web:2" not found`))
	case i == webPods:
		return w.update(ready(pod("shop", "web", webPods-1)))
	}
	return nil
}

// jobs starts one pod every other tick; each runs, succeeds and is deleted, one
// a tick, so that nobody misses a step.
func (w world) jobs(n int) error {
	born, old := pod("batch", "job", n/2), pod("batch", "job", n/2-jobLife)
	starts := n%2 == 0
	if starts {
		if _, err := w.server.Create(starting(born, "ContainerCreating", "")); err != nil {
			return err
		}
	} else if err := w.update(ready(born)); err != nil {
		return err
	}
	if n/2 < jobLife {
		return nil
	}
	if starts {
		old.Status.Phase = corev1.PodSucceeded
		return w.update(old)
	}
	_, err := w.server.Delete(old)
	return err
}

func (w world) update(obj informertest.APIObject) error {
	_, err := w.server.Update(obj)
	return err
}

func node(i int) string { return fmt.Sprintf("node-%d", i%nodes+1) }

func pod(namespace, app string, i int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("%s-%d", app, i+1), Labels: map[string]string{"app": app},
		},
		Spec: corev1.PodSpec{NodeName: node(i)},
	}
}

// ready returns p as it is when it runs and is ready.
func ready(p *corev1.Pod) *corev1.Pod {
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return p
}

// starting returns p as it is while its container waits for something.
func starting(p *corev1.Pod, reason, message string) *corev1.Pod {
	p.Status.Phase = corev1.PodPending
	p.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodReady, Status: corev1.ConditionFalse,
		Reason: "ContainersNotReady", Message: "containers with unready status: [main]",
	}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name:  "main",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
	}}
	return p
}
