package informer

import (
	"errors"
	"io"
	"net/http"
	"reflect"

	"k8s.io/client-go/rest"
)

// What a response may cost, whoever sent it. API servers refuse objects above
// 3 MiB, so that nothing real comes near.
const (
	// maxObject is how long one object may be, in bytes of JSON.
	maxObject = 64 << 20
	// maxElements is how much memory the elements of one object may take, by
	// estimate, beside their text: "{}," is three bytes, and a container is
	// hundreds.
	maxElements = 48 << 20
	// maxText is how long one string may be, or an object that is needed as a
	// whole: the decoder's buffer, which doubles, is then at most 32 MiB.
	maxText = 24 << 20
	// maxWhole is how long an object may be to be read as a whole before it is
	// decoded, which is how the decoder works that agrees with the one of
	// Kubernetes in everything. Longer ones are decoded as they come.
	maxWhole = 4 << 20
	// maxAround is how long what is no object may be: the metadata of a list, a
	// bookmark, a status, white space, a member that nobody knows.
	maxAround = 1 << 20
	// maxDepth is how deep an object may be nested: a little less than what ends
	// the decoder.
	maxDepth = 9_900
	// fewBytes is how much of an object is read before its elements count.
	fewBytes = 64 << 10
	// maxError is how long the body of an answer that is an error may be.
	maxError = 1 << 20
)

var (
	errTooLarge = errors.New("larger than 64 MiB, or too much of it is one string or small elements")
	errTooDeep  = errors.New("nested too deeply")
	errAround   = errors.New("more than 1 MiB that is no object")
)

// withShortErrors returns a client like client that ends the body of an answer
// which is an error at 1 MiB: client-go reads such bodies as a whole. Of a
// client of another type that is not known how to do.
//
// The copy is made by reflection because it takes the unexported fields too, by
// which the request is to be as it would have been.
//
// Its transport also tells [withContentType] what an answer is.
func withShortErrors(client rest.Interface) (twin rest.Interface, ok bool) {
	known, ok := client.(*rest.RESTClient)
	if !ok {
		return client, false
	}
	copied := new(rest.RESTClient)
	reflect.ValueOf(copied).Elem().Set(reflect.ValueOf(known).Elem())
	copied.Client = new(http.Client)
	if known.Client != nil {
		*copied.Client = *known.Client
	}
	copied.Client.Transport = shortErrors{orElse(copied.Client.Transport, http.DefaultTransport)}
	return copied, true
}

// shortErrors is a transport that ends the body of an answer which is an error.
type shortErrors struct{ next http.RoundTripper }

// RoundTrip makes a request.
func (t shortErrors) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := t.next.RoundTrip(request)
	if err == nil {
		noteContentType(request, answer)
	}
	if err == nil && answer.Body != nil && (answer.StatusCode < 200 || answer.StatusCode > 299) {
		answer.Body = shortBody{io.LimitReader(answer.Body, maxError), answer.Body}
		if err := statusAsJSON(answer); err != nil {
			return nil, err
		}
	}
	return answer, err
}

// shortBody is the beginning of a body.
type shortBody struct {
	io.Reader
	io.Closer
}
