package informer_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/seed-99a027e8/informer"
)

// Be told what happens to ConfigMaps.
func ExampleHandlerFuncs() {
	config, stop := exampleCluster(settings("theme", "red"))
	defer stop()
	client := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")

	maps, err := informer.New(informer.FromClient[*corev1.ConfigMap](client), informer.Options{})
	if err != nil {
		panic(err)
	}
	gone := make(chan struct{})
	registration, err := maps.AddHandler(informer.HandlerFuncs[*corev1.ConfigMap]{
		OnAdd: func(m *corev1.ConfigMap, initial bool) {
			fmt.Println("added", m.Data["color"], initial)
		},
		OnUpdate: func(old, m *corev1.ConfigMap) {
			fmt.Println("updated", old.Data["color"], m.Data["color"])
		},
		OnDelete: func(last *corev1.ConfigMap, exact bool) {
			fmt.Println("deleted", last.Data["color"], exact)
			close(gone)
		},
	}.Handle, informer.HandlerOptions{})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- maps.Run(ctx) }()

	// When the initial calls have returned, the handler is synced.
	if err := registration.WaitSynced(ctx); err != nil {
		panic(err)
	}
	if _, err := client.Update(ctx, settings("theme", "blue"), metav1.UpdateOptions{}); err != nil {
		panic(err)
	}
	if err := maps.WaitUntil(ctx, func(r informer.Reader[*corev1.ConfigMap]) bool {
		m, _ := r.Get(informer.Key{Namespace: "default", Name: "theme"})
		return m.Data["color"] == "blue"
	}); err != nil {
		panic(err)
	}
	if err := client.Delete(ctx, "theme", metav1.DeleteOptions{}); err != nil {
		panic(err)
	}
	<-gone

	cancel()
	fmt.Println(<-done)
	// Output:
	// added red true
	// updated red blue
	// deleted blue true
	// <nil>
}
