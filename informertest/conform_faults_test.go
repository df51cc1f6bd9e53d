package informertest_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/informertest"
)

// TestConformSeesFaults runs the suite on a fake server whose answers are not
// what they should be, and wants exactly the checks that are about it.
func TestConformSeesFaults(t *testing.T) {
	for _, test := range []struct {
		rule informertest.Rule
		want string // names of checks
	}{
		{informertest.Rule{Fault: informertest.FaultTwice, Verb: "list"}, "list"},
		{informertest.Rule{Fault: informertest.FaultUnversioned, Verb: "list"}, "list"},
		{informertest.Rule{Fault: informertest.FaultNameless, Verb: "list"}, "list"},
		{informertest.Rule{Fault: informertest.FaultVersionless, Verb: "list"}, "list"},
		{informertest.Rule{Fault: informertest.FaultTruncated, Verb: "list", After: 1}, "list"},
		{informertest.Rule{Fault: informertest.FaultDuplicate, Verb: "watch"}, "watch"},
		{informertest.Rule{Fault: informertest.FaultReorder, Verb: "watch"}, "watch"},
		{informertest.Rule{Fault: informertest.FaultClose, Verb: "watch", After: 2}, "watch"},
		{informertest.Rule{Fault: informertest.FaultNoBookmarks, Verb: "watch"}, "watch/bookmarks"},
		{informertest.Rule{Fault: informertest.FaultIgnored}, "stream stream/not-older"},
		{informertest.Rule{Fault: informertest.FaultUnversioned, Verb: "stream"}, "stream stream/not-older"},
		{informertest.Rule{Fault: informertest.FaultInvalid, Verb: "stream"}, ""}, // may be refused
	} {
		t.Run(string(test.rule.Fault)+" "+test.rule.Verb, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := informertest.Start(t, informertest.Options{})
				if _, err := srv.Inject(test.rule); err != nil {
					t.Fatal(err)
				}
				source := informer.FromREST[corev1.ConfigMap](
					kubernetes.NewForConfigOrDie(srv.Config()).CoreV1().RESTClient(), mapResource, informer.RESTOptions{})
				err := informertest.Conform(t.Context(), serverRig(srv, source, labelOf[*corev1.ConfigMap]))
				if got, want := failedChecks(err), strings.Fields(test.want); !slices.Equal(got, want) {
					t.Errorf("not passed: %v, want %v\n%v", got, want, err)
				}
			})
		})
	}
}
