package informertest

import (
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// unsupportedMediaType refuses the body of a request.
func unsupportedMediaType(accepted []string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure,
		Code:   http.StatusUnsupportedMediaType,
		Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: "the body of the request was in an unknown format - accepted media types include: " +
			strings.Join(accepted, ", "),
	}}
}

// notAcceptable says that no form that the client wants is known.
func notAcceptable() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusNotAcceptable,
		Reason:  metav1.StatusReasonNotAcceptable,
		Message: "only the following media types are accepted: application/json",
	}}
}

// viewOf returns the first form among those of the Accept header that is known.
// Lists are asked for as another kind than single objects.
func viewOf(r *http.Request, res *Resource, list bool) (view, error) {
	header := r.Header.Get("Accept")
	if header == "" {
		return view{resource: res}, nil
	}
	for entry := range strings.SplitSeq(header, ",") {
		mediaType, params, err := mime.ParseMediaType(entry)
		if err != nil || mediaType != "application/json" && mediaType != "application/*" && mediaType != "*/*" {
			continue
		}
		if params["as"] == "" {
			return view{resource: res}, nil
		}
		known := params["g"] == metav1.GroupName && params["v"] == "v1"
		if known && !list && params["as"] == "PartialObjectMetadata" ||
			known && list && params["as"] == "PartialObjectMetadataList" {
			return view{resource: res, partial: true}, nil
		}
	}
	return view{}, notAcceptable()
}

// statusOf returns the form in which err is told to a client. What is not an
// error of the API is answered 500, without a reason.
func statusOf(err error) metav1.Status {
	s := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		s = status.Status()
	}
	s.Kind, s.APIVersion = "Status", "v1"
	return s
}

func writeError(w http.ResponseWriter, err error) {
	status := statusOf(err)
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	writeJSON(w, int(status.Code), status)
}

func writeJSON(w http.ResponseWriter, code int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	writeBody(w, code, body)
}

// writeBody writes a whole answer. That the client may have gone away is no
// concern of the server.
func writeBody(w http.ResponseWriter, code int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(body)
}

// writeRecord answers with one object.
func writeRecord(w http.ResponseWriter, code int, v view, r *record) {
	body, err := v.object(r)
	if err != nil {
		writeError(w, err)
		return
	}
	writeBody(w, code, body)
}

// writePage answers with a page of a list.
func writePage(w http.ResponseWriter, v view, p page) {
	body, err := p.encode(v)
	if err != nil {
		writeError(w, err)
		return
	}
	writeBody(w, http.StatusOK, body)
}
