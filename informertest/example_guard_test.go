package informertest_test

import (
	"context"
	"fmt"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/informertest"
)

// A handler that changes what it is given changes the cache. In a test,
// guard.Verify(t) tells at the end.
func ExampleGuard() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	script := informertest.NewScript(exampleTest{}, informertest.NewObject, "stream shop/web=red@5 end 10 hang")
	guard := informertest.NewGuard(script)
	objects, err := informer.New(guard, informer.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	reg, err := objects.AddHandler(func(c informer.Change[*informertest.Object]) {
		c.New.Value = "painted" // it should have made a copy
	}, informer.HandlerOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan error, 1)
	go func() { done <- objects.Run(ctx) }()
	if err := reg.WaitSynced(ctx); err != nil {
		fmt.Println(err)
	}

	fmt.Println(guard.Check())
	cancel()
	<-done
	// Output:
	// informertest: object "shop/web", version "5", was changed: Value
}
