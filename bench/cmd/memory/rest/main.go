// Command rest is a small program with one informer: ours, which decodes by itself.
// It is there to be built and weighed.
package main

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/seed-99a027e8/informer"
)

func main() {
	config, err := rest.InClusterConfig()
	if err != nil {
		log.Fatal(err)
	}
	// What answers are made of does not matter to FromREST; a client must have it.
	config.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		log.Fatal(err)
	}
	pods, err := informer.New(informer.FromREST[corev1.Pod](client,
		corev1.SchemeGroupVersion.WithResource("pods"), informer.RESTOptions{}), informer.Options{})
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
