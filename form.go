package informer

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// form is what [FromREST] has to know of the Go type of its objects. It is
// found out once a source, by reflection; no object is looked at in this way.
type form struct {
	typ     reflect.Type
	name    string       // in errors, such as "v1.Pod"
	kind    string       // the kind that the type stands for, if known
	untyped bool         // unstructured.Unstructured: objects keep their kind
	partial bool         // metav1.PartialObjectMetadata
	opaque  bool         // the type decodes itself
	weight  weight       // of what an object consists of, for its limits
	out     *leftOut     // what objects are to be without, or nil
	options json.Options // of decoders
	// streaming are options of decoders that do not look at a whole value before
	// they decode it. Their errors differ, and behind one they stop.
	streaming json.Options
}

// formOf returns the form of E, whose objects are to be without what is out.
func formOf[E any](out *leftOut, share bool) form {
	t := reflect.TypeFor[E]()
	f := form{
		typ:     t,
		name:    t.String(),
		untyped: t == reflect.TypeFor[unstructured.Unstructured](),
		partial: t == reflect.TypeFor[metav1.PartialObjectMetadata](),
		out:     out,
	}
	// In this module a type is named as its kind. A user's own type for a part
	// of a Pod need not be.
	if strings.HasPrefix(t.PkgPath(), "k8s.io/api/") {
		f.kind = t.Name()
	}
	f.opaque = !f.untyped && decodesItself(t)
	f.weight = weightOf(t, map[reflect.Type]bool{})
	if f.untyped || f.opaque {
		f.weight = anyWeight()
	}
	f.options = decodeOptions()
	f.streaming = streamOptions(share, share && !quotesStrings(t, map[reflect.Type]bool{}))
	return f
}

// decodeOptions returns what makes the decoder agree with the one of
// Kubernetes: encoding/json as it always was, but for letter case, and for
// numbers in interfaces. It also makes an error inside a value leave the decoder
// behind that value, with the rest of it decoded.
func decodeOptions() json.Options {
	return json.JoinOptions(jsonv1.DefaultOptionsV1(), json.MatchCaseInsensitiveNames(false),
		json.WithUnmarshalers(anyStrings{}.unmarshalers()))
}

// streamOptions returns what makes the decoder agree with that of decodeOptions
// in whatever it finds no fault with, in one pass, and in less time. The strings
// in interfaces are shared, and all others, if asked for.
func streamOptions(share, all bool) json.Options {
	shared := anyStrings{names: newSharedStrings(fewSets)}
	if share {
		shared.names = newSharedStrings(manySets)
		shared.texts = shared.names
	}
	unmarshalers := json.JoinUnmarshalers(json.UnmarshalFunc(unmarshalTime), shared.unmarshalers())
	if all {
		unmarshalers = json.JoinUnmarshalers(json.UnmarshalFunc(shared.texts.unmarshal), unmarshalers)
	}
	return json.JoinOptions(decodeOptions(), json.WithUnmarshalers(unmarshalers),
		jsonv1.ReportErrorsWithLegacySemantics(false))
}

// unmarshalTime decodes a time as its own method does, which takes most of the
// time to find out that it is a string.
func unmarshalTime(raw []byte, out *metav1.Time) error {
	if len(raw) > 2 && raw[0] == '"' {
		if t, err := time.Parse(time.RFC3339, string(raw[1:len(raw)-1])); err == nil {
			out.Time = t.Local()
			return nil
		}
	}
	return out.UnmarshalJSON(raw)
}

// decodesItself reports whether *t has a method that decodes JSON.
func decodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[json.UnmarshalerFrom]())
}

// quotesStrings reports whether JSON has strings inside of strings for a t, by
// the option of a field. The types in seen are not to be visited again.
func quotesStrings(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return quotesStrings(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			_, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			if slices.Contains(strings.Split(options, ","), "string") || quotesStrings(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}

// anyStrings is what is shared of the strings that are decoded into interfaces:
// the names of members, and the values.
type anyStrings struct{ names, texts *sharedStrings }

// unmarshalers returns what decodes into interfaces as Kubernetes does.
func (a anyStrings) unmarshalers() *json.Unmarshalers {
	return json.JoinUnmarshalers(json.UnmarshalFromFunc(a.unmarshalAny), json.UnmarshalFromFunc(a.unmarshalUnstructured))
}

// unmarshalUnstructured decodes into u as apimachinery does, without its three
// passes.
func (a anyStrings) unmarshalUnstructured(dec *jsontext.Decoder, u *unstructured.Unstructured) error {
	if k := dec.PeekKind(); k != '{' && k != 'n' {
		return json.UnmarshalDecode(dec, &u.Object) // which says what is wrong
	}
	var v any
	err := a.unmarshalAny(dec, &v)
	u.Object, _ = v.(map[string]any)
	return err
}

// unmarshalAny decodes into out as Kubernetes does: numbers become int64 where
// they can, else float64, and of members of one name the last one counts. A
// number that no float64 holds is an error, after all the rest is decoded.
func (a anyStrings) unmarshalAny(dec *jsontext.Decoder, out *any) error {
	d := anyDecoder{json: dec, anyStrings: a}
	v, err := d.value()
	*out = v
	if err == nil {
		err = d.bad
	}
	return err
}

type anyDecoder struct {
	anyStrings
	json *jsontext.Decoder
	bad  error // the first number that is out of range
}

// value decodes the next value.
func (a *anyDecoder) value() (any, error) {
	switch a.json.PeekKind() {
	case '{':
		return a.object()
	case '[':
		return a.array()
	}
	raw, err := a.json.ReadValue()
	if err != nil {
		return nil, err
	}
	switch raw.Kind() {
	case 't', 'f':
		return raw[0] == 't', nil
	case '"':
		return a.texts.of(unquoted(raw)), nil
	case '0':
		return a.number(raw), nil
	}
	return nil, nil
}

func (a *anyDecoder) object() (any, error) {
	if _, err := a.json.ReadToken(); err != nil {
		return nil, err
	}
	object := map[string]any{}
	for a.json.PeekKind() != '}' {
		name, err := a.json.ReadValue()
		if err != nil {
			return object, err
		}
		key := a.names.of(unquoted(name)) // before that is overwritten
		if object[key], err = a.value(); err != nil {
			return object, err
		}
	}
	_, err := a.json.ReadToken()
	return object, err
}

func (a *anyDecoder) array() (any, error) {
	if _, err := a.json.ReadToken(); err != nil {
		return nil, err
	}
	array := []any{}
	for a.json.PeekKind() != ']' {
		v, err := a.value()
		if err != nil {
			return array, err
		}
		array = append(array, v)
	}
	_, err := a.json.ReadToken()
	return array, err
}

// number returns the value of a number.
func (a *anyDecoder) number(raw []byte) any {
	if i, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return i
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		if a.bad == nil {
			a.bad = err
		}
		return nil
	}
	return f
}

const (
	mapWeight = 56 // bytes of an empty map
	mapGroup  = 8  // elements for which a map has room at first
	mapRoom   = 2  // elements, full or not, of a large map for each full one
)

// A weight is how much memory a piece of JSON may take when it is decoded, at
// most, beside its text: that makes "{}," more than three bytes. Both numbers
// are in bytes, and estimates.
type weight struct {
	open int64 // of an object or array, with its first element
	more int64 // of each further element
}

// anyWeight returns the weight of what is decoded into interfaces.
func anyWeight() weight {
	const slot, boxed = 16, 8
	return weight{open: mapWeight + mapGroup*2*slot + slot, more: mapRoom*(slot+boxed) + slot}
}

// or returns the greater numbers of both.
func (w weight) or(v weight) weight {
	return weight{open: max(w.open, v.open), more: max(w.more, v.more)}
}

// weightOf returns the greatest weight of anything in what is decoded into a t.
// Types in seen are not to be visited again.
func weightOf(t reflect.Type, seen map[reflect.Type]bool) (w weight) {
	if seen[t] || decodesItself(t) {
		return weight{}
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return anyWeight()
	case reflect.Pointer:
		w = weight{open: int64(t.Elem().Size())}
	case reflect.Slice, reflect.Array:
		size := int64(t.Elem().Size())
		w = weight{open: size, more: size}
	case reflect.Map:
		size := int64(t.Key().Size() + t.Elem().Size())
		w = weight{open: mapWeight + mapGroup*size, more: mapRoom * size}
	case reflect.Struct:
		for i := range t.NumField() {
			w = w.or(weightOf(t.Field(i).Type, seen))
		}
		return w
	default:
		return weight{}
	}
	return w.or(weightOf(t.Elem(), seen))
}
