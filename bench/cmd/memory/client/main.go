// Command client is a small program with one informer: ours, of a typed client.
// It is there to be built and weighed.
package main

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/seed-99a027e8/informer"
)

func main() {
	config, err := rest.InClusterConfig()
	if err != nil {
		log.Fatal(err)
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	pods, err := informer.New(informer.FromClient[*corev1.Pod](clients.CoreV1().Pods("")), informer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := pods.AddHandler(func(c informer.Change[*corev1.Pod]) {
		fmt.Println(c.Type, c.Key)
	}, informer.HandlerOptions{}); err != nil {
		log.Fatal(err)
	}
	log.Fatal(pods.Run(context.Background()))
}
