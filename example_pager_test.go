package informer_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/seed-99a027e8/informer"
)

// Read a collection once, two objects at a time.
func ExamplePager() {
	config, stop := exampleCluster(settings("a", "red"), settings("b", "green"), settings("c", "red"))
	defer stop()
	clientset := kubernetes.NewForConfigOrDie(config)

	pager, err := informer.NewPager(informer.FromClient[*corev1.ConfigMap](clientset.CoreV1().ConfigMaps("")))
	if err != nil {
		panic(err)
	}
	colors := make(map[string]int)
	for m, err := range pager.All(context.Background(), metav1.ListOptions{Limit: 2}) {
		switch {
		case errors.Is(err, informer.ErrRestarted):
			clear(colors) // the list starts over
		case err != nil:
			panic(err)
		default:
			colors[m.Data["color"]]++
		}
	}
	fmt.Println(colors)
	// Output: map[green:1 red:2]
}
