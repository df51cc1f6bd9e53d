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
	// what objects are equal to.
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
// path is built from the resource, and the encoding is JSON. What is decoded
// equals what client-go's decoders make of it, in letter case, duplicate names,
// nulls, invalid UTF-8 and numbers too. E may be any API type, any part of one
// (fields that E lacks are skipped without being kept),
// unstructured.Unstructured, or metav1.PartialObjectMetadata, for which the
// server is asked for metadata only.
//
// A server is not trusted. Each of these is one bad object, with its key if
// that came early, and is passed without being held: an object longer than 64
// MiB (24 MiB, if E has a method that decodes JSON, or the type of a watch event
// comes behind its object); one with a string longer than 24 MiB; one longer
// than 64 KiB whose elements would take more than 48 MiB, by an estimate from
// the sizes of E's parts; one nested deeper than 9,900. Anything else that is
// longer than 1 MiB, as the metadata of a list, is an error of the request, and
// of the body of an answer that is an error the first 1 MiB counts. An API
// server takes no object above 3 MiB.
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
	return &restSource[E, T]{client: withShortErrors(client), path: url, form: formOf[E](), out: out}
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
	out    *leftOut // of objects
}

// List yields a page.
func (s *restSource[E, T]) List(ctx context.Context, opts metav1.ListOptions) iter.Seq2[Event[T], error] {
	return func(yield func(Event[T], error) bool) {
		err := s.read(ctx, opts, func(body io.Reader) error {
			list := listDecoder[E, T]{decoder: newDecoder(ctx, body, s.form, insideList), yield: yield}
			return list.run()
		})
		if err != nil && !errors.Is(err, errLeft) {
			yield(Event[T]{}, ended(ctx, err))
		}
	}
}

// Watch yields what the server sends.
func (s *restSource[E, T]) Watch(ctx context.Context, opts metav1.ListOptions) iter.Seq2[Event[T], error] {
	return func(yield func(Event[T], error) bool) {
		opts.Watch = true
		err := s.read(ctx, opts, func(body io.Reader) error {
			frames := watchDecoder[E, T]{
				decoder:    newDecoder(ctx, body, s.form, insideFrame),
				watchState: watchState[T]{yield: yield, initial: opts.SendInitialEvents != nil && *opts.SendInitialEvents},
			}
			return frames.run()
		})
		if err != nil && !errors.Is(err, errLeft) {
			yield(Event[T]{}, ended(ctx, err))
		}
	}
}

// read makes one request, and has decode read its body.
func (s *restSource[E, T]) read(ctx context.Context, opts metav1.ListOptions, decode func(io.Reader) error) error {
	query, err := queryparams.Convert(&opts)
	if err != nil {
		return fmt.Errorf("informer: list options: %w", err)
	}
	// The request ends with this function, so that a loop that is left early
	// does not wait for the rest of a body.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	request := s.client.Get().AbsPath(s.path).MaxRetries(0).SetHeader("Accept", s.form.accept(opts.Watch))
	if opts.Watch {
		request = request.Throttle(nil)
	}
	for name, values := range query {
		for _, value := range values {
			request = request.Param(name, value)
		}
	}
	body, err := request.Stream(ctx)
	if err != nil {
		return withoutSecrets(err)
	}
	defer body.Close()
	return decode(body)
}
