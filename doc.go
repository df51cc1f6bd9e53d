// Package informer keeps an in-memory, indexed copy of one kind of Kubernetes
// object up to date, and tells handlers what changed.
//
// Everything is typed, from the decoder to the handler, and data flows one way:
//
//	API server ─list/watch─▶ Reflector ─events─▶ DeltaFIFO ─batches─▶ Indexer
//	                                                                     │ changes
//	   your reconcile ◀─keys─ WorkQueue ◀────────── Handler ◀────────────┘
//
// An [Informer] is one such pipeline, from [Reflector] to [Handler], shared by
// any number of handlers and readers; it is all that most programs need. Each
// stage is exported, and useful alone: [ListerWatcher], [Reflector],
// [DeltaFIFO], [Indexer], [WorkQueue], [RateLimiter], and [Pager] for those who
// only list. This is a program:
//
//	pods, err := informer.New(
//		informer.FromClient[*corev1.Pod](clientset.CoreV1().Pods("")), informer.Options{})
//	if err != nil {
//		return err
//	}
//	done := make(chan error, 1)
//	go func() { done <- pods.Run(ctx) }()
//	if err := pods.WaitSynced(ctx); err != nil {
//		return err // it says why
//	}
//	pod, ok := pods.Get(informer.Key{Namespace: "shop", Name: "web-0"}) // a *corev1.Pod
//
// [FromClient] takes any typed, dynamic or metadata client; [FromREST] decodes
// by itself, with less memory and no loss to one bad object; [Transform] and
// [Project] make objects smaller before they are stored. [AddIndex] finds
// objects by anything, [Enqueue] feeds a queue, [Run] and [WaitSynced] are for
// several informers at once.
//
// # Ownership
//
// Objects are shared by the cache, all handlers and all readers: treat every
// object that you receive as read-only, and copy it before you change it.
//
// Constructors start no goroutine. Run starts them all, and they have ended when
// it returns, except code of yours that [Options.Grace] was not enough for. After
// that, readers go on answering from the last state; what needs a running
// informer returns [ErrStopped].
//
// # Ordering
//
// A handler sees the changes of one object in order, and never two calls at a
// time. There is no order between objects, nor between handlers, and a slow
// handler delays nobody: what it misses is coalesced, at most two changes a key
// (see [HandlerOptions]). When it is called, the cache shows that change
// already, or something later.
//
// The cache passes only through states that the server had. Each query, and each
// loop, sees one state; [Reader.Snapshot] keeps one. An object that is deleted
// and created again under the same name is a deletion and an addition, never an
// update.
//
// # Work
//
// A [WorkQueue] leases each key to one worker at a time, and loses none: what fails
// is retried or parked, what is left at the end is returned. It has priorities that
// cannot starve, fair shares, limits and numbers for those who ask for them. Each
// call of client-go's workqueue and controller-runtime's priorityqueue, and what
// takes its place, is in docs/workqueue.md.
//
// # Versions
//
// [Informer.WaitForResourceVersion] lets you read your own writes. The cache does
// not go back to older versions, unless the server itself does, as after a
// restore of etcd from a backup: then the cache follows, nothing of before
// survives, and waits for versions of before end with [ErrNewEpoch]. A restored
// etcd that has gone on past the version of the cache cannot be told from the old
// one: restore it with etcdutl's --bump-revision.
//
// # Errors and logs
//
// What can be tried again is, never faster than the backoff of [Options]. Each
// failure is reported once to [Options.OnFailure], which may end Run, and is
// seen in [Informer.Status]. [Options.Logger] gets a line for each change of
// state, at most ten an hour; without it there are no logs. A wait that ends
// early returns the last failure, so that the predicates of
// k8s.io/apimachinery/pkg/api/errors tell why: forbidden, not found. One object
// that cannot be used is an [ObjectError], and costs only itself. No error and
// no log shows a token or an object, of which only key and field are named:
// what client-go cites in its errors, such as the query of a URL or the body of
// an answer, is left out. Run ends by itself only for [ErrWatchNotSupported]
// and a [WrongTypeError].
//
// # Memory
//
// The cache holds one copy of each object, and indexes hold no keys of objects
// but small numbers. A snapshot costs what has changed since. A relist keeps the
// objects that have not changed. Backlogs of the queue and of slow handlers are
// bounded by the number of objects, not of events.
//
// # Testing
//
// Package informertest has an API server in memory that speaks to any client,
// also inside a testing/synctest bubble, and a source that plays a script. It is
// the way to test. client-go's fakes work too, but their objects have no UIDs and
// their versions are made up: with them the cache cannot tell older from newer,
// the same object from a new one or the unchanged from the changed, and a wait
// for a version returns [ErrNotComparable].
package informer
