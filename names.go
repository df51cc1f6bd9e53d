package informer

import "fmt"

// nameOf returns the name of e, a value of the enumeration kind that begins with
// these names; of one that has none, its number.
func nameOf[E ~uint8](kind string, e E, names ...string) string {
	if int(e) < len(names) {
		return names[e]
	}
	return fmt.Sprintf("%s(%d)", kind, uint8(e))
}
