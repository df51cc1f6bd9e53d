package informer_test

import (
	_ "github.com/go-json-experiment/json"
	_ "github.com/google/go-cmp/cmp"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/time/rate"
	_ "k8s.io/api/core/v1"
	_ "k8s.io/client-go/dynamic/fake"
	_ "k8s.io/client-go/kubernetes/fake"
	_ "k8s.io/client-go/metadata/fake"
	_ "k8s.io/client-go/rest"
	_ "k8s.io/client-go/tools/leaderelection"
	_ "pgregory.net/rapid"
)
