package informer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	typeJSON  = "application/json"
	typeProto = "application/vnd.kubernetes.protobuf"
)

// accept returns the media types to ask for, the best one first: for metadata
// only, if partial is set, and protobuf, if proto is.
func accept(partial, proto, watch bool) string {
	types := []string{typeJSON}
	if proto {
		types = []string{typeProto, typeJSON}
	}
	if partial {
		as := ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
		if watch {
			as = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
		}
		for i := range types {
			types[i] += as
		}
		types = append(types, typeJSON)
	}
	return strings.Join(types, ",")
}

// isProto reports whether an answer of that content type is protobuf, which may
// be known or not. One without a type is JSON.
func isProto(contentType string, known bool) (bool, error) {
	if contentType == "" {
		return false, nil
	}
	media, _, err := mime.ParseMediaType(contentType)
	switch {
	case media == typeJSON:
		return false, nil
	case media == typeProto && known:
		return true, nil
	case err == nil:
		contentType = media
	}
	return false, fmt.Errorf("the answer is of content type %.64q, which was not asked for", contentType)
}

// contentTypeKey is the key of a request's value that is where to note the
// content type of the answer: client-go returns nothing of an answer that is
// good but its body.
type contentTypeKey struct{}

// withContentType returns a context for one request, and where the content type
// of the answer will be.
func withContentType(ctx context.Context) (context.Context, *string) {
	to := new(string)
	return context.WithValue(ctx, contentTypeKey{}, to), to
}

// noteContentType notes what an answer is where its request wants it.
func noteContentType(request *http.Request, answer *http.Response) {
	if to, ok := request.Context().Value(contentTypeKey{}).(*string); ok {
		*to = answer.Header.Get("Content-Type")
	}
}

// statusAsJSON makes a Status in protobuf one in JSON, which every client can
// read: the answer is an error, and says more than its code does.
func statusAsJSON(answer *http.Response) error {
	if proto, err := isProto(answer.Header.Get("Content-Type"), true); err != nil || !proto {
		return nil
	}
	raw, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil {
		return err
	}
	var status metav1.Status
	e, err := openEnvelope(raw)
	if err == nil && string(e.kind) == "Status" && status.Unmarshal(e.message) == nil {
		status.APIVersion, status.Kind = "v1", "Status"
		if text, err := json.Marshal(status); err == nil {
			raw = text
			answer.Header.Set("Content-Type", typeJSON)
			answer.Header.Del("Content-Length")
			answer.ContentLength = int64(len(raw))
		}
	}
	answer.Body = io.NopCloser(bytes.NewReader(raw))
	return nil
}
