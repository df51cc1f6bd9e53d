// Package informertest helps to test programs that watch a Kubernetes API
// server, without one.
//
// # A server
//
// A [Server] is an API server over real HTTP, on a socket or on connections in
// memory. It keeps objects of any kind, and lists and watches them as
// kube-apiserver v1.37 does: one line of versions, paging, selectors,
// bookmarks, streaming lists, expired versions and too large ones. Any client
// can talk to it:
//
//	srv := informertest.Start(t, informertest.Options{})
//	clientset, err := kubernetes.NewForConfig(srv.Config())
//
// In memory, which is the default, it lives happily inside a testing/synctest
// bubble, where hours of watching take no time:
//
//	synctest.Test(t, func(t *testing.T) {
//		srv := informertest.Start(t, informertest.Options{})
//		clientset, err := kubernetes.NewForConfig(srv.Config())
//		…
//		go func() { done <- pods.Run(t.Context()) }() // ends before srv does
//		…
//		version, err := srv.Create(pod)
//		err = pods.WaitForResourceVersion(t.Context(), version)
//
// A program that is no test calls [NewServer] and [Server.Run].
//
// # Faults
//
// To test a controller against an API server that fails, make the server fail.
// A [Rule] says which requests are struck, and by what:
//
//	heal, err := srv.Inject(informertest.Rule{Fault: "forbidden", Resource: "pods"})
//	…
//	heal() // the credentials are right again
//
// A [Fault] is one word, some with a value: connections that are refused, dropped,
// cut in the middle of an object or silent for ever ("refused", "drop", "cut",
// "halfopen"); errors, of a whole answer or within a stream ("expired",
// "toomany=3s", "internal"); answers that leave out, repeat, swap or garble
// something ("ignored", "duplicate", "reorder", "malformed", "table"); and states that
// go back ("restored", "stale", "reborn"). [Chaos] draws them by a seed.
// [Server.Restore], [Server.Recreate], [Server.Compact] and [Server.EndWatches] do
// what no request brings about.
//
// [Server.Requests] tells what was asked and when, and which request was struck, so
// that a test can see how often a client asks:
//
//	lists := srv.Requests().Of("list")
//	if len(lists) > 0 && slices.Min(lists.Pauses()) < time.Second { … }
//
// FAULTS.md, beside this package, has a table of all faults: what package
// informer does about each, and what a handler is told. Each row is a test.
//
// # Scripts
//
// A [Script] is a source that does exactly what its lines say, one request a
// line. It needs no server and no client:
//
//	source := informertest.NewScript(t, informertest.NewObject,
//		"list 10 a b", "watch a@11 expired", "list 20 b", "watch hang")
//
// Its words for faults are those of the server, but for faults of bytes.
//
// [Conform] checks a source, yours too, for what any source must do. The server
// and kube-apiserver pass it alike.
//
// A [Guard] finds out who changes objects of a cache, which are read-only:
//
//	guard := informertest.NewGuard(source)
//	guard.Verify(t) // at the end of the test
//	pods, err := informer.New(guard, informer.Options{})
//
// # Limits
//
// What a [Server] leaves out: it has no admission, authentication, defaults or
// validation beyond metadata, no managedFields, and it speaks JSON only.
// Server-side apply and tables are refused. No controller runs, with one
// exception: a namespace that is deleted takes its objects with it.
package informertest
