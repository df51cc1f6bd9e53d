package informertest_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/informertest"
)

// TestConformScript runs the suite on a script that a model writes. A line says
// at once all that happens in a request: so the line of a watch is written some
// time after the request, when the check has made its writes and waits. What is
// written after that, the watch cannot tell.
func TestConformScript(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		rig := m.rig(informertest.NewScriptFunc(t, informertest.NewObject, m.line))
		const late = "writes twice during one request"
		rig.Skip = map[string]string{
			"watch/now": late, "watch/deletion": late, "bad-object": late,
		}
		rig.Log = t.Logf
		if err := informertest.Conform(t.Context(), rig); err != nil {
			t.Error(err)
		}
	})
}

const scriptDelay = time.Second / 2

// line writes the line of a script that answers a request.
func (m *memory) line(c informertest.Call) string {
	switch c.Kind {
	case "list":
		return "list " + m.listLine(c)
	case "watch":
		<-time.After(scriptDelay)
		return "watch " + m.watchLine(c)
	}
	return "stream invalid"
}

func (m *memory) listLine(c informertest.Call) string {
	q, err := m.query(c.Options)
	if err != nil {
		return scriptError(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	version := len(m.states) - 1
	if q.exact {
		version = q.version
	}
	words := []string{strconv.Itoa(version)}
	objects := m.states[version].objects
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		if name <= q.after || !q.selected(objects[name]) {
			continue
		}
		if q.limit > 0 && len(words)-1 == q.limit {
			return strings.Join(append(words, fmt.Sprintf("continue=%d/%s", version, q.after)), " ")
		}
		words, q.after = append(words, scriptWord("", objects[name].Object)), name
	}
	return strings.Join(words, " ")
}

func (m *memory) watchLine(c informertest.Call) string {
	q, err := m.query(c.Options)
	if err != nil {
		return scriptError(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var words []string
	for ; q.version < len(m.states)-1; q.version++ {
		ev, _ := memDiff(q, m.states[q.version], m.states[q.version+1])
		sign := map[informer.EventType]string{
			informer.EventAdded: "+", informer.EventModified: "~", informer.EventDeleted: "-",
		}[ev.Type]
		if ev.Type != 0 {
			words = append(words, scriptWord(sign, ev.Object))
		}
	}
	switch seconds := c.Options.TimeoutSeconds; {
	case seconds == nil:
		words = append(words, "hang")
	case c.Options.AllowWatchBookmarks:
		words = append(words, fmt.Sprintf("sleep=%v bookmark %d sleep=2s close", time.Duration(*seconds-2)*time.Second-scriptDelay, q.version))
	default:
		words = append(words, fmt.Sprintf("sleep=%v close", time.Duration(*seconds)*time.Second-scriptDelay))
	}
	return strings.Join(words, " ")
}

func scriptWord(sign string, o *informertest.Object) string {
	return fmt.Sprintf("%s%s#%s=%s@%s", sign, o.Name, o.UID, o.Value, o.Version)
}

func scriptError(err error) string {
	if apierrors.IsResourceExpired(err) {
		return "expired"
	}
	return "toolarge"
}
