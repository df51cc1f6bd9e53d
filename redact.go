package informer

import (
	"errors"
	"fmt"
	"net/textproto"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxMessage is how much of a server's message an error shows, in bytes.
const maxMessage = 1 << 10

// A hiddenError says what is wrong without what is not to be seen: objects, as
// they may be Secrets, and tokens. The error inside may hold that. It is there
// for errors.Is and errors.As.
type hiddenError struct {
	text string
	err  error
}

// Error returns the text.
func (e *hiddenError) Error() string { return e.text }

// Unwrap returns the error inside.
func (e *hiddenError) Unwrap() error { return e.err }

// Timeout reports whether the error inside says that time was up: a url.Error
// asks only the error directly in it.
func (e *hiddenError) Timeout() bool {
	inside, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](e.err)
	return ok && inside.Timeout()
}

// withoutContent returns err, which says what is wrong with a value, without
// what that value is. The type is that of the value, or nil if it is not to be
// told where in it the fault is.
func withoutContent(err error, t reflect.Type) error {
	if err == nil || errors.Is(err, errTooLarge) || errors.Is(err, errTooDeep) {
		return err
	}
	text := fmt.Sprintf("its Go type refuses a value (%T)", err)
	if wrong, ok := errors.AsType[*jsonv1.UnmarshalTypeError](err); ok {
		kind, _, _ := strings.Cut(wrong.Value, " ")
		text = wrongType(t, wrong.Field, kind, wrong.Type)
	} else if wrong, ok := errors.AsType[*json.SemanticError](err); ok {
		path := strings.ReplaceAll(strings.TrimPrefix(string(wrong.JSONPointer), "/"), "/", ".")
		text = wrongType(t, path, wrong.JSONKind.String(), wrong.GoType)
	}
	return &hiddenError{text: text, err: err}
}

// wrongType returns what is wrong with a value of that kind, at that path of a t,
// which is to be a want.
func wrongType(t reflect.Type, path, kind string, want reflect.Type) string {
	text := fmt.Sprintf("%s in place of a Go %v", orElse(kind, "a value"), want)
	if path := knownPath(t, path); path != "" {
		return path + ": " + text
	}
	return text
}

// withoutNames returns err, which says where a body is no JSON, without the
// names of members that lead there. The body has had base bytes before.
func withoutNames(err error, base int64) error {
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return fmt.Errorf("after byte %d: %w", base+syntax.ByteOffset, syntax.Err)
	}
	return err
}

// knownPath returns the part of path, which has dots, that consists of fields
// of t and of positions in arrays. What comes behind is a key of a map, which is
// content, and what comes before leads to the object.
func knownPath(t reflect.Type, path string) string {
	names := strings.Split(path, ".")
	for len(names) > 0 && t != nil && t.Kind() == reflect.Struct {
		if _, ok := fieldNamed(t, names[0]); ok {
			break
		}
		names = names[1:]
	}
	known := names[:0]
	for _, name := range names {
		for t != nil && t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		var ok bool
		if t, ok = inside(t, name); !ok {
			break
		}
		known = append(known, name)
	}
	return strings.Join(known, ".")
}

// inside returns the type of the field or element of a t that has the name.
func inside(t reflect.Type, name string) (reflect.Type, bool) {
	if t == nil {
		return nil, false
	}
	switch t.Kind() {
	case reflect.Struct:
		return fieldNamed(t, name)
	case reflect.Slice, reflect.Array:
		_, err := strconv.Atoi(name)
		return t.Elem(), err == nil
	}
	return nil, false
}

// fieldNamed returns the type of the field of t, or of a struct embedded in it,
// that JSON has under the name.
func fieldNamed(t reflect.Type, name string) (reflect.Type, bool) {
	for i := range t.NumField() {
		field := t.Field(i)
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		embedded := field.Type
		if embedded.Kind() == reflect.Pointer {
			embedded = embedded.Elem()
		}
		switch {
		case !field.IsExported() && !field.Anonymous, field.Tag.Get("json") == "-": // JSON has none of these
		case field.Anonymous && tag == "" && embedded.Kind() == reflect.Struct:
			if found, ok := fieldNamed(embedded, name); ok {
				return found, true
			}
		case orElse(tag, field.Name) == name:
			return field.Type, true
		}
	}
	return nil, false
}

// withoutSecrets returns err, which a request has met, without tokens and
// bodies: without the query of a URL, which has the continue token and the
// selectors in it, without what an answer says that is no answer of an API
// server, and without what a client's decoder shows. What an API server says
// remains, as it is made to be shown.
func withoutSecrets(err error) error {
	if request, ok := errors.AsType[*url.Error](err); ok {
		return replaced(err, request, &url.Error{
			Op: request.Op, URL: withoutQuery(request.URL), Err: withoutQuotes(request.Err),
		})
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return replaced(err, status, &apierrors.StatusError{ErrStatus: withoutBody(status.ErrStatus)})
	}
	if other, ok := errors.AsType[*apierrors.UnexpectedObjectError](err); ok {
		return fmt.Errorf("informer: watch: an error event with a %T", other.Object)
	}
	if aboutDecoding(err.Error()) {
		return withoutQuotes(err)
	}
	return err
}

// aboutDecoding reports whether a text is one of a decoder. Most such errors
// have no type, or lose it on their way through a client, and they cite the
// value that is wrong, or the object as a whole.
func aboutDecoding(text string) bool {
	for _, word := range []string{"pars", "decod", "marshal", "json", "strconv", "is missing in"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// replaced returns err with clean in place of found, which is in it.
func replaced(err, found, clean error) error {
	if err == found {
		return clean
	}
	text := strings.ReplaceAll(err.Error(), found.Error(), clean.Error())
	return &hiddenError{text: text, err: errors.Join(clean, err)}
}

// withoutQuery returns a URL without what is behind the path.
func withoutQuery(address string) string {
	address, _, _ = strings.Cut(address, "?")
	return address
}

// withoutQuotes returns err, of a transport or a decoder, without what it cites:
// that is what the server has sent.
func withoutQuotes(err error) error {
	text := err.Error()
	if header, ok := errors.AsType[textproto.ProtocolError](err); ok {
		said, _, _ := strings.Cut(string(header), ": ")
		text = strings.ReplaceAll(text, string(header), said)
	}
	text, _, _ = strings.Cut(text, " in '") // of an object without a kind
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, `"`)
		out.WriteString(before)
		if !found {
			break
		}
		out.WriteString(`"…"`)
		text = behindQuote(rest)
	}
	if out.String() == err.Error() {
		return err
	}
	return &hiddenError{text: out.String(), err: err}
}

// behindQuote returns what is behind the next quote that is not escaped.
func behindQuote(text string) string {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return text[i+1:]
		}
	}
	return ""
}

// withoutBody returns a status without what it has of a body that was no
// status, and with short texts.
func withoutBody(status metav1.Status) metav1.Status {
	status.Message = shortMessage(status.Message)
	if status.Details == nil {
		return status
	}
	details := *status.Details
	details.Causes = slices.Clone(details.Causes)
	for i := range details.Causes {
		cause := &details.Causes[i]
		cause.Message = shortMessage(cause.Message)
		if cause.Type != metav1.CauseTypeUnexpectedServerResponse && cause.Type != causeWatchDecoding {
			continue
		}
		cause.Message = ""
		said := "nothing that is to be shown"
		if cause.Type == causeWatchDecoding {
			said = "an event that the client cannot decode"
		}
		resource := schema.GroupResource{Group: details.Group, Resource: details.Kind}
		status.Message = apierrors.NewGenericServerResponse(int(status.Code), "get", resource, details.Name, said, 0, true).ErrStatus.Message
	}
	status.Details = &details
	return status
}

// causeWatchDecoding is how client-go marks a status that it has made itself, of
// an event that it could not decode.
const causeWatchDecoding metav1.CauseType = "ClientWatchDecoding"

// shortMessage returns the beginning of a message.
func shortMessage(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage], "") + "…"
}
