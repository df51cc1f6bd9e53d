package informertest_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/informertest"
)

// A server in memory, in a program that is no test: a real client watches what
// is written.
func ExampleServer() {
	srv, err := informertest.NewServer(informertest.Options{})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- srv.Run(ctx) }()

	clientset, err := kubernetes.NewForConfig(srv.Config())
	if err != nil {
		panic(err)
	}
	watching, err := clientset.CoreV1().ConfigMaps("").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		panic(err)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"color": "red"}}
	if _, err := srv.Create(cm); err != nil {
		panic(err)
	}
	cm.Data["color"] = "blue"
	if _, err := srv.Update(cm); err != nil {
		panic(err)
	}
	for range 2 {
		event := <-watching.ResultChan()
		fmt.Println(event.Type, event.Object.(*corev1.ConfigMap).Data)
	}
	watching.Stop()
	cancel()
	fmt.Println(<-done)
	// Output:
	// ADDED map[color:red]
	// MODIFIED map[color:blue]
	// <nil>
}

// A script says what a source does at each request.
func ExampleScript() {
	t := exampleTest{} // in a test, its t
	source := informertest.NewScript(t, informertest.NewObject, "list 10 a b", "watch a=new@11 -b@12 expired")
	ctx := context.Background()
	for event, err := range source.List(ctx, metav1.ListOptions{}) {
		fmt.Println(event.Type, event.Key.Name, event.Version, err)
	}
	for event, err := range source.Watch(ctx, metav1.ListOptions{ResourceVersion: "10"}) {
		if err != nil {
			fmt.Println(err)
			break
		}
		fmt.Println(event.Type, event.Object)
	}
	fmt.Println(source.Calls())
	// Output:
	// Added a 10 <nil>
	// Added b 10 <nil>
	// End  10 <nil>
	// Modified a=new@11
	// Deleted b@12
	// The resourceVersion for the provided list is too old.
	// [list watch?resourceVersion=10]
}

// A function writes the script, with what it is asked at hand: here a server
// whose only object changes all the time.
func ExampleNewScriptFunc() {
	t := exampleTest{} // in a test, its t
	version := 10
	source := informertest.NewScriptFunc(t, informertest.NewObject, func(c informertest.Call) string {
		if c.Kind == "list" {
			return fmt.Sprintf("list %d a", version)
		}
		version++
		return fmt.Sprintf("%s sleep=10ms a@%d", c.Kind, version)
	})
	ctx := context.Background()
	for event := range source.List(ctx, metav1.ListOptions{}) {
		fmt.Println(event.Type, event.Version)
	}
	for event := range source.Watch(ctx, metav1.ListOptions{ResourceVersion: "10"}) {
		fmt.Println(event.Type, event.Object)
	}
	// Output:
	// Added 10
	// End 10
	// Modified a@11
}

// A source of your own is held to what any source must do. In a test, give the
// rig t.Logf, and end with t.Error(err).
func ExampleConform() {
	srv, err := informertest.NewServer(informertest.Options{})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- srv.Run(ctx) }()
	clientset := kubernetes.NewForConfigOrDie(srv.Config())

	object := func(name, color string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"color": color}}}
	}
	err = informertest.Conform(ctx, informertest.Rig[*corev1.ConfigMap]{
		Source: informer.FromClient[*corev1.ConfigMap](clientset.CoreV1().ConfigMaps("default")),
		Create: func(_ context.Context, name, color string) (string, error) { return srv.Create(object(name, color)) },
		Update: func(_ context.Context, name, color string) (string, error) { return srv.Update(object(name, color)) },
		Delete: func(_ context.Context, name string) error {
			_, err := srv.Delete(object(name, ""))
			return err
		},
		Value:  func(m *corev1.ConfigMap) string { return m.Labels["color"] },
		Select: func(color string) string { return "color=" + color },
		Only:   []string{"list", "list/selectors", "list/pages", "watch", "watch/race"},
	})
	fmt.Println(err)
	cancel()
	fmt.Println(<-done)
	// Output:
	// <nil>
	// <nil>
}

// exampleTest stands for a *testing.T, which an example does not have.
type exampleTest struct{}

func (exampleTest) Helper()                                {}
func (exampleTest) Cleanup(func())                         {}
func (exampleTest) Context() context.Context               { return context.Background() }
func (exampleTest) Errorf(format string, arguments ...any) { panic(fmt.Errorf(format, arguments...)) }
func (exampleTest) Fatalf(format string, arguments ...any) { panic(fmt.Errorf(format, arguments...)) }
