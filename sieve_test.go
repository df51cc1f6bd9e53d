package informer_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/seed-99a027e8/informer"
)

// dropped returns v without what the names lead to, through lists.
func dropped(v any, names ...string) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = dropped(v[i], names...)
		}
	case map[string]any:
		if len(names) == 1 {
			delete(v, names[0])
		} else if inside, ok := v[names[0]]; ok {
			v[names[0]] = dropped(inside, names[1:]...)
		}
	}
	return v
}

// Promises 7 and 12: what is let through is what is wanted, in whatever pieces
// it comes.
func TestSieve(t *testing.T) {
	for _, tt := range []struct{ inside, body, want string }{
		{"", `{"a":1}`, `{"a":1}`},
		{"", `{"x":1}`, `{}`},
		{"", ` { "x" : {"a":[1,"}\"]"]} , "a" : 2 } `, `  {   "a" : 2 } `},
		{"", `{"a":1,"x":2,"b":3}`, `{"a":1,"b":3}`},
		{"", `{"x":1,"x":[],"a":1,"x":{}}`, `{"a":1}`},
		{"", `{"\u0078":1,"a":2}`, `{"a":2}`},
		{"", `{"X":1,"x ":2}`, `{"X":1,"x ":2}`},
		{"", `{"y":{"z":1,"x":2}}`, `{"y":{"x":2}}`},
		{"", `{"y":[{"z":1},[{"z":{},"a":2}],7,null]}`, `{"y":[{},[{"a":2}],7,null]}`},
		{"", `{"y":null,"a":"x"}`, `{"y":null,"a":"x"}`},
		{"", `{"a":{"x":1},"k":{"a.b/c":"d","e":"f"}}`, `{"a":{"x":1},"k":{"e":"f"}}`},
		{"", `[{"x":1},{"a":1}]`, `[{},{"a":1}]`},
		{"items", `{"x":1,"items":[{"x":1,"a":{"x":1}},{"b":2}],"y":{"z":1}}`, `{"x":1,"items":[{"a":{"x":1}},{"b":2}],"y":{"z":1}}`},
		{"object", `{"type":"ADDED","object":{"x":1,"a":2}}` + "\n" + `{"type":"BOOKMARK","object":{"x":1}}`,
			`{"type":"ADDED","object":{"a":2}}` + "\n" + `{"type":"BOOKMARK","object":{"x":1}}`},
		{"object", `{"object":{"x":1},"type":"ADDED"}{"type":"\u0044ELETED","object":{"x":1}}`, `{"object":{"x":1},"type":"ADDED"}{"type":"\u0044ELETED","object":{}}`},
		{"object", `{"type":7,"object":{"x":1}}{"type":null,"type":"MODIFIED","object":[{"x":1}]}`, `{"type":7,"object":{"x":1}}{"type":null,"type":"MODIFIED","object":[{}]}`},
		// What is no JSON stays none.
		{"", `{"a":1,}`, `{"a":1,}`},
		{"", `{"x":1,}`, `{,}`},
		{"", `{,"x":1}`, `{,"x":1}`},
		{"", `{"a":1,2}`, `{"a":1,2}`},
		{"", `{"x":1,2}`, `{,!2}`},
		{"", `{"a":[1,2],,}`, `{"a":[1,2],,}`},
		{"", `{"x":1 "a":2}`, `{ !"a":2}`},
		{"", `{"a":1 "b":2}`, `{"a":1 "b":2}`},
		{"", `{"y" {}}`, `{"y" {}}`},
		{"", `{"y":[{"z":1}}`, `{"y":[{}}`},
		{"", `}`, `}`},
		{"", `{"` + strings.Repeat("a", 5000) + `":{"x":1},"x":1}`, `{"` + strings.Repeat("a", 5000) + `":{"x":1}}`},
		{"", strings.Repeat("[", 100) + `{"x":1}` + strings.Repeat("]", 100), strings.Repeat("[", 100) + `{"x":1}` + strings.Repeat("]", 100)},
	} {
		for _, size := range []int{1, 2, 3, 7, 1 << 20} {
			got, err := informer.Sift([]byte(tt.body), tt.inside, size, "x", "y.z", "k['a.b/c']")
			if err != nil {
				t.Fatal(err)
			}
			if strings.Join(strings.Fields(string(got)), "") != strings.Join(strings.Fields(tt.want), "") {
				t.Errorf("%.100s in pieces of %d: %.100s, want %.100s", tt.body, size, got, tt.want)
			}
		}
	}
}

// FuzzSieve compares with decoding all, and then dropping. What is no JSON does
// not become JSON, unless that which is left out is none.
func FuzzSieve(f *testing.F) {
	for _, raw := range decodeOddities() {
		f.Add([]byte(raw), 1)
	}
	f.Add([]byte(`{"any":{"a":[{"b":1},{"b":2,"c":"\"}"}]},"texts":{"a.b":"x","a":"y"},"x":[{"int":7}]}`), 3)
	f.Add([]byte(decodeBenchPod), 5)
	paths := []string{"text", "any.a.b", "texts['a.b']", "metadata.managedFields", "spec.containers.env"}
	f.Fuzz(func(t *testing.T, raw []byte, size int) {
		if size <= 0 {
			return
		}
		got, err := informer.Sift(raw, "", size, paths...)
		if err != nil {
			t.Fatal(err)
		}
		whole, _ := informer.Sift(raw, "", len(raw)+1, paths...)
		if string(got) != string(whole) {
			t.Fatalf("%q: in pieces of %d %q, else %q", raw, size, got, whole)
		}
		var have, want any
		if !json.Valid(raw) {
			if nothing, _ := informer.Sift(raw, "", size, "no such name", "a.no such name"); json.Valid(nothing) {
				t.Errorf("%q became %q", raw, nothing)
			}
			return
		}
		if json.Unmarshal(raw, &want) != nil { // a number is out of range
			return
		}
		for _, names := range [][]string{{"text"}, {"any", "a", "b"}, {"texts", "a.b"}, {"metadata", "managedFields"}, {"spec", "containers", "env"}} {
			want = dropped(want, names...)
		}
		if err := json.Unmarshal(got, &have); err != nil || !reflect.DeepEqual(have, want) && len(raw) < 1000 {
			t.Errorf("%q: %q, error %v, want %v", raw, got, err, want)
		}
	})
}
