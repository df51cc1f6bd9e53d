// Command clientgo is a small program with one informer: client-go's, from its factory.
// It is there to be built and weighed.
package main

import (
	"context"
	"fmt"
	"log"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
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
	factory := informers.NewSharedInformerFactory(clients, 0)
	pods := factory.Core().V1().Pods().Informer()
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { tell("Added", obj) },
		UpdateFunc: func(_, obj any) { tell("Updated", obj) },
		DeleteFunc: func(obj any) { tell("Deleted", obj) },
	}); err != nil {
		log.Fatal(err)
	}
	pods.RunWithContext(context.Background())
}

func tell(what string, obj any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(what, key)
}
