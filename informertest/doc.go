// Package informertest helps to test programs that watch a Kubernetes API
// server, without one.
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
// A [Script] is a source that does exactly what its lines say, one request a
// line. It needs no server and no client:
//
//	source := informertest.NewScript(t, informertest.NewObject,
//		"list 10 a b", "watch a@11 expired", "list 20 b", "watch hang")
//
// A [Guard] finds out who changes objects of a cache, which are read-only:
//
//	guard := informertest.NewGuard(source)
//	guard.Verify(t) // at the end of the test
//	pods, err := informer.New(guard, informer.Options{})
//
// What a [Server] leaves out: it has no admission, authentication, defaults or
// validation beyond metadata, no managedFields, and it speaks JSON only.
// Server-side apply and tables are refused. No controller runs, with one
// exception: a namespace that is deleted takes its objects with it.
package informertest
