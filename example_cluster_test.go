package informer_test

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/seed-99a027e8/informer/informertest"
)

// exampleCluster starts an API server in memory that has these objects. It
// returns what a client needs to talk to it, and a function that ends it.
//
// The examples use it in place of a cluster; a program takes its configuration
// from a kubeconfig file or from rest.InClusterConfig.
func exampleCluster(objects ...informertest.APIObject) (config *rest.Config, stop func()) {
	server, err := informertest.NewServer(informertest.Options{})
	if err != nil {
		panic(err)
	}
	for _, obj := range objects {
		if _, err := server.Create(obj); err != nil {
			panic(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- server.Run(ctx) }()
	return server.Config(), func() {
		cancel()
		if err := <-done; err != nil {
			panic(err)
		}
	}
}

// podOn is a pod of the namespace default, on a node.
func podOn(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.PodSpec{NodeName: node},
	}
}

// settings is a ConfigMap of the namespace default, with a color.
func settings(name, color string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Data:       map[string]string{"color": color},
	}
}
