package informer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion/queryparams"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// RESTOptions tunes [FromREST]. The zero value is ready to use.
type RESTOptions struct {
	// Namespace limits the objects to those of one namespace.
	//
	// Default: all namespaces, and kinds that have none.
	Namespace string

	// LeaveOut are paths of what objects are to be without, such as
	// "metadata.managedFields", "status.images", "spec.containers.env" (of each
	// container) and, for one key of a map,
	// "metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']".
	// It is passed while objects are decoded: nothing of it is held, or looked at
	// for faults. What an object says of itself cannot be left out: its kind,
	// apiVersion, name, namespace, uid and resourceVersion. A path that E does
	// not have is an error from the constructor that the source is given to.
	//
	// Default: objects are complete.
	LeaveOut []string

	// ShareStrings makes equal strings of different objects, and of one, share
	// their memory, as the names and values of labels do, and the names of nodes
	// and images. For this, the source remembers some thousands of short strings
	// that have come more than once, and none that came once. It takes no part in
	// what objects are equal to. From protobuf, the strings of metadata are shared
	// (but for those in which nothing is, as names and UIDs), and no others.
	//
	// Default: each object has its own.
	ShareStrings bool
}

// FromREST returns a source that decodes the answers of an API server itself,
// from the response to one fresh object after the other: no body, list or page
// is ever in memory as a whole, and one object that cannot be decoded is one
// bad object. E is the type of the objects, T its pointer, which is inferred:
//
//	informer.FromREST[corev1.Pod](clientset.CoreV1().RESTClient(),
//		corev1.SchemeGroupVersion.WithResource("pods"), informer.RESTOptions{})
//
// Any REST client will do, whatever its group, version and content type: the
// path is built from the resource, and the server is asked for protobuf if E is
// a type that was generated for it, as those of k8s.io/api are, else for JSON. It
// may answer with either: a custom resource comes as JSON, whatever its Go type.
// (A client that is no *rest.RESTClient does not tell which it is, and is asked
// for JSON.) What is decoded equals what client-go's decoders make of it, in
// letter case, duplicate names, nulls, invalid UTF-8 and numbers too. E may be
// any API type, any part of one (fields that E lacks are skipped without being
// kept), unstructured.Unstructured, or metav1.PartialObjectMetadata, for which
// the server is asked for metadata only.
//
// A server is not trusted. Each of these is one bad object, with its key if
// that came early, and is passed without being held: an object longer than 64
// MiB (24 MiB, if it is protobuf, E has a method that decodes JSON, or the type
// of a watch event comes behind its object); one with a string longer than 24
// MiB; one longer than 64 KiB whose elements would take more than 48 MiB, by an
// estimate from the sizes of E's parts; one nested deeper than 9,900. Anything
// else that is longer than 1 MiB, as the metadata of a list, is an error of the
// request, and of the body of an answer that is an error the first 1 MiB
// counts. An API server takes no object above 3 MiB.
//
// For a type of k8s.io/api it is a *[WrongTypeError] if the resource is of
// another kind. Of other types it is not known which kind they stand for.
//
// The client's own retries are off, and its rate limiter does not hold up
// watches: who ranges over a sequence decides when to try again. A nil client,
// as a fake clientset's RESTClient() is, an incomplete resource, a namespace
// that cannot be in a path, and a path to leave out that E does not have are
// errors from the constructor that the source is given to.
func FromREST[E any, T interface {
	*E
	Object
}](client rest.Interface, resource schema.GroupVersionResource, opts RESTOptions) ListerWatcher[T] {
	url, err := resourcePath(resource, opts.Namespace)
	out, errPaths := newLeftOut(opts.LeaveOut, reflect.TypeFor[E]())
	err = errors.Join(err, errPaths)
	if isNil(client) {
		err = errors.Join(fmt.Errorf("client is nil (%T)", client), err)
	}
	if err != nil {
		return brokenSource[T]{fmt.Errorf("informer: REST source of %s: %w", typeName[T](), err)}
	}
	s := &restSource[E, T]{path: url, form: formOf[E](out, opts.ShareStrings)}
	var known bool
	if s.client, known = withShortErrors(client); known {
		s.proto = protoFormOf[E, T](s.form, opts.ShareStrings)
	}
	return s
}

// resourcePath returns the path of the collection.
func resourcePath(resource schema.GroupVersionResource, namespace string) (string, error) {
	parts := []string{"", "apis", resource.Group, resource.Version}
	if resource.Group == "" {
		parts = []string{"", "api", resource.Version}
	}
	if namespace != "" {
		parts = append(parts, "namespaces", namespace)
	}
	parts = append(parts, resource.Resource)

	var errs []error
	if resource.Version == "" || resource.Resource == "" {
		errs = append(errs, fmt.Errorf("resource is %q: must have a version and a name", resource))
	}
	for _, part := range parts[1:] {
		for _, msg := range content.IsPathSegmentName(part) {
			errs = append(errs, fmt.Errorf("%q in the path: %s", part, msg))
		}
	}
	return strings.Join(parts, "/"), errors.Join(errs...)
}

// restSource is the source of FromREST. It keeps nothing from one request to
// the next.
type restSource[E any, T interface {
	*E
	Object
}] struct {
	client rest.Interface
	path   string
	form   form
	proto  *protoForm[T] // nil if protobuf is not to be asked for
}

// List yields a page.
func (s *restSource[E, T]) List(ctx context.Context, opts metav1.ListOptions) iter.Seq2[Event[T], error] {
	return s.sequence(ctx, opts, func(a answer, yield func(Event[T], error) bool) error {
		state := listState[T]{yield: yield}
		if a.proto {
			list := protoList[E, T]{protoReader: protoReader{ctx: a.ctx, body: a.body}, listState: state, form: s.proto}
			return list.run()
		}
		list := listDecoder[E, T]{decoder: newDecoder(a.ctx, a.body, s.form, inList()), listState: state}
		return list.run()
	})
}

// Watch yields what the server sends.
func (s *restSource[E, T]) Watch(ctx context.Context, opts metav1.ListOptions) iter.Seq2[Event[T], error] {
	opts.Watch = true
	return s.sequence(ctx, opts, func(a answer, yield func(Event[T], error) bool) error {
		state := watchState[T]{yield: yield, initial: opts.SendInitialEvents != nil && *opts.SendInitialEvents}
		if a.proto {
			watch := protoWatch[E, T]{protoReader: protoReader{ctx: a.ctx, body: a.body}, watchState: state, form: s.proto}
			return watch.run()
		}
		watch := watchDecoder[E, T]{decoder: newDecoder(a.ctx, a.body, s.form, inFrame()), watchState: state}
		return watch.run()
	})
}

// An answer is one to be decoded.
type answer struct {
	ctx   context.Context // of the request, which ends with the decoder
	body  io.Reader
	proto bool // the body is protobuf, not JSON
}

// sequence returns the sequence of a request.
func (s *restSource[E, T]) sequence(
	ctx context.Context, opts metav1.ListOptions, decode func(answer, func(Event[T], error) bool) error,
) iter.Seq2[Event[T], error] {
	return func(yield func(Event[T], error) bool) {
		err := s.read(ctx, opts, func(a answer) error { return decode(a, yield) })
		if err != nil && !errors.Is(err, errLeft) {
			yield(Event[T]{}, ended(ctx, err))
		}
	}
}

// read makes one request, and has decode read its body.
func (s *restSource[E, T]) read(ctx context.Context, opts metav1.ListOptions, decode func(answer) error) error {
	query, err := queryparams.Convert(&opts)
	if err != nil {
		return fmt.Errorf("informer: list options: %w", err)
	}
	// The request ends with this function, so that a loop that is left early
	// does not wait for the rest of a body.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	request := s.client.Get().AbsPath(s.path).MaxRetries(0).SetHeader("Accept", accept(s.form.partial, s.proto != nil, opts.Watch))
	if opts.Watch {
		request = request.Throttle(nil)
	}
	for name, values := range query {
		for _, value := range values {
			request = request.Param(name, value)
		}
	}
	noted, contentType := withContentType(ctx)
	body, err := request.Stream(noted)
	if err != nil {
		return withoutSecrets(err)
	}
	defer body.Close()
	a := answer{ctx: ctx, body: body}
	if a.proto, err = isProto(*contentType, s.proto != nil); err != nil {
		return fmt.Errorf("informer: request for %s: %w", s.form.name, err)
	}
	return decode(a)
}
