package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/seed-99a027e8/informer/examples/controller/copier"
)

const (
	controllerBinary = "bin/controller"
	copiedName       = "app-config"
	copiedLabel      = "example.com/app-config"
)

// TestController runs the program examples/controller, with the rights that its
// documentation names and no more, on 50 namespaces that are not as it wants
// them, while someone else undoes what it does. At the end each namespace has
// the copy that it should have. Promises 3, 14, 22 and 24.
func TestController(t *testing.T) {
	t.Parallel()
	build := exec.Command("go", "build", "-o", controllerBinary, "github.com/seed-99a027e8/informer/examples/controller")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build of the controller: %v\n%s", err, out)
	}
	s := startServer(t, serverOptions{users: []string{"copier"}})
	s.allow("copier", copierRights()...)
	d := drift{clientset(t, s.admin())}
	inParallel(t, driftNamespaces, func(i int) error { return d.namespace(t.Context(), i) })
	if err := d.source(t.Context()); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "log")
	program, err := startProcess(log, controllerBinary, "-kubeconfig", writeKubeconfig(t, s.user("copier")),
		"-source", "default/"+copiedName, "-label", copiedLabel)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		program.kill()
		<-program.done
		if said, _ := os.ReadFile(log); t.Failed() {
			t.Logf("the controller said:\n%.8000s", said)
		}
	})

	pace := time.NewTicker(10 * time.Millisecond)
	defer pace.Stop()
	for range 1500 {
		<-pace.C
		if err := d.step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	eventually(t, "every namespace is right", d.right)
	t.Logf("all right %v after the last drift", time.Since(began).Round(time.Millisecond))

	if err := program.terminate(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-program.done:
	case <-time.After(20 * time.Second):
		t.Fatal("the controller has not ended 20s after a SIGTERM")
	}
	if program.err != nil {
		t.Errorf("the controller ended with %v, want none", program.err)
	}
}

// copierRights are the rights that package copier says it needs, but for the
// namespace that leases are limited to.
func copierRights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{""}, Resources: []string{"namespaces"}},
		{
			Verbs:     []string{"get", "list", "watch", "create", "update", "delete"},
			APIGroups: []string{""}, Resources: []string{"configmaps"},
		},
		{
			Verbs:     []string{"get", "create", "update"},
			APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"},
		},
	}
}

// writeKubeconfig returns the path of a file for a client.
func writeKubeconfig(t testing.TB, config *rest.Config) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	file := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"it": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"it": {Token: config.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{"it": {Cluster: "it", AuthInfo: "it"}},
		CurrentContext: "it",
	}
	if err := clientcmd.WriteToFile(file, path); err != nil {
		t.Fatal(err)
	}
	return path
}

const driftNamespaces = 50

// drift is someone who does not want what the controller wants.
type drift struct{ client kubernetes.Interface }

func driftNamespace(i int) string { return fmt.Sprintf("team-%02d", i) }

// namespace makes namespace i: with a label but no copy, or with an old one, or
// with one but no label, or with a foreign object in the place of a copy.
func (d drift) namespace(ctx context.Context, i int) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: driftNamespace(i)}}
	if i%5 != 0 {
		ns.Labels = map[string]string{copiedLabel: ""}
	}
	if _, err := d.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return err
	}
	old := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: copiedName},
		Data:       map[string]string{"made-by": "an earlier run"},
	}
	switch {
	case d.foreign(i):
	case i%2 == 0:
		old.Labels = map[string]string{copier.LabelCopyOf: "default"}
	default:
		return nil
	}
	_, err := d.client.CoreV1().ConfigMaps(ns.Name).Create(ctx, old, metav1.CreateOptions{})
	return err
}

// foreign reports that what namespace i has was not made by the controller.
func (d drift) foreign(i int) bool { return i == 7 }

// source makes the object that is to be copied.
func (d drift) source(ctx context.Context) error {
	_, err := d.client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: copiedName}, Data: map[string]string{"revision": "0"},
	}, metav1.CreateOptions{})
	return err
}

// step makes one thing wrong, if it is right.
func (d drift) step(ctx context.Context) (err error) {
	i := rand.IntN(driftNamespaces)
	if d.foreign(i) {
		return nil
	}
	namespace := driftNamespace(i)
	copies := d.client.CoreV1().ConfigMaps(namespace)
	change := fmt.Appendf(nil, `{"data":{"revision":"%d"}}`, rand.Uint32())
	switch rand.IntN(10) {
	case 0:
		_, err = d.client.CoreV1().ConfigMaps("default").Patch(
			ctx, copiedName, types.MergePatchType, change, metav1.PatchOptions{})
	case 1:
		err = d.setLabel(ctx, namespace, `""`)
	case 2:
		err = d.setLabel(ctx, namespace, "null")
	case 3, 4, 5:
		err = copies.Delete(ctx, copiedName, metav1.DeleteOptions{})
	default:
		_, err = copies.Patch(ctx, copiedName, types.MergePatchType, change, metav1.PatchOptions{})
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (d drift) setLabel(ctx context.Context, namespace, value string) error {
	_, err := d.client.CoreV1().Namespaces().Patch(ctx, namespace, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, copiedLabel, value), metav1.PatchOptions{})
	return err
}

// right returns an error if a namespace has not the copy that it should have.
func (d drift) right(ctx context.Context) error {
	source, err := d.client.CoreV1().ConfigMaps("default").Get(ctx, copiedName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	namespaces, err := d.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	labelled := make(map[string]bool)
	for _, ns := range namespaces.Items {
		_, labelled[ns.Name] = ns.Labels[copiedLabel]
	}
	var errs []error
	for i := range driftNamespaces {
		namespace := driftNamespace(i)
		have, err := d.client.CoreV1().ConfigMaps(namespace).Get(ctx, copiedName, metav1.GetOptions{})
		switch {
		case err != nil && !apierrors.IsNotFound(err):
			return err
		case d.foreign(i):
			if err != nil || have.Data["made-by"] == "" {
				errs = append(errs, fmt.Errorf("%s: the foreign object was touched", namespace))
			}
		case labelled[namespace] != (err == nil):
			errs = append(errs, fmt.Errorf("%s: label %v, but copy %v", namespace, labelled[namespace], err == nil))
		case err == nil && !maps.Equal(have.Data, source.Data):
			errs = append(errs, fmt.Errorf("%s: data is %v, want %v", namespace, have.Data, source.Data))
		}
	}
	return errors.Join(errs...)
}
