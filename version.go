package informer

import (
	"cmp"
	"strconv"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// A version is a resource version for who compares it often. Its text is read
// once, and where the object is read: later that is a miss of the cache, and
// under a lock one that others wait for.
type version struct {
	text   string
	number uint64 // 0 if text is not a version that can be compared, or one beyond 64 bits
}

func versionOf(text string) version {
	if text == "" || text[0] == '0' {
		return version{text: text}
	}
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		number = 0
	}
	return version{text, number}
}

// compare returns the order of v and w, or an error if they cannot be compared.
func (v version) compare(w version) (int, error) {
	if v.number != 0 && w.number != 0 {
		return cmp.Compare(v.number, w.number), nil
	}
	return resourceversion.CompareResourceVersion(v.text, w.text)
}

// isComparable reports that v can be compared to others of its kind.
func (v version) isComparable() bool {
	_, err := v.compare(v)
	return err == nil
}

// advance returns the version that a stream has reached which was at v when to
// comes, and whether to is known to be older. A version that cannot be compared
// only takes the place of another such: to ask a server for what came after "0"
// would mean anything.
func (v version) advance(to version) (reached version, old bool) {
	order, err := to.compare(v)
	switch {
	case err == nil && order > 0:
		return to, false
	case err == nil, to.text == "", v.isComparable():
		return v, order < 0
	}
	return to, false
}

// isOlder reports that v is known to be lower than w. Versions that cannot be
// compared are never older.
func (v version) isOlder(w version) bool {
	order, err := v.compare(w)
	return err == nil && order < 0
}

// older is isOlder of versions as they come.
func older(a, b string) bool { return versionOf(a).isOlder(versionOf(b)) }
