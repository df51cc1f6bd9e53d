package informer

import (
	"reflect"

	"github.com/go-json-experiment/json"
)

// DecodeLikeREST decodes one value as a source of FromREST[E] does.
func DecodeLikeREST[E any](raw []byte, out any) error {
	return json.Unmarshal(raw, out, formOf[E]().options)
}

// DecodePlain decodes one value as FromREST does for types that hold no
// interface, and HoldsAny tells these from the others.
func DecodePlain(raw []byte, out any) error { return json.Unmarshal(raw, out, decodeOptions()) }

// HoldsAny reports whether decoding into a t may meet an interface.
func HoldsAny(t reflect.Type) bool { return holdsAny(t, map[reflect.Type]bool{}) }
