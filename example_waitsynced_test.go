package informer_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/informertest"
)

// A wait that fails says why: here the rights are missing. OnFailure says that
// there is no use in trying again.
func ExampleInformer_WaitSynced() {
	server, err := informertest.NewServer(informertest.Options{
		Intercept: func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusForbidden) })
		},
	})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	serving := make(chan error)
	go func() { serving <- server.Run(ctx) }()
	clientset := kubernetes.NewForConfigOrDie(server.Config())

	pods, err := informer.New(informer.FromClient[*corev1.Pod](clientset.CoreV1().Pods("")), informer.Options{
		OnFailure: func(f informer.Failure) error {
			fmt.Println(f.Op, f.Attempt, apierrors.IsForbidden(f.Err))
			return f.Err // ends Run; nil would let it go on
		},
	})
	if err != nil {
		panic(err)
	}
	done := make(chan error)
	go func() { done <- pods.Run(ctx) }()

	err = pods.WaitSynced(ctx)
	fmt.Println("wait:", apierrors.IsForbidden(err), errors.Is(err, informer.ErrStopped))
	fmt.Println("run:", apierrors.IsForbidden(<-done))

	cancel()
	fmt.Println(<-serving)
	// Output:
	// streaming list 1 true
	// wait: true true
	// run: true
	// <nil>
}
