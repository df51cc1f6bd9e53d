package informertest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// freshTimeout is how long a request waits for a version that is not there yet.
const freshTimeout = 3 * time.Second

const (
	listTooOld = "The resourceVersion for the provided list is too old."
	// continueTooOld is the answer to a token of a state that is forgotten; it
	// comes with a token that goes on with the current state.
	continueTooOld = "The provided continue parameter is too old " +
		"to display a consistent list result. You can start a new list without " +
		"the continue parameter, or use the continue token in this response to " +
		"retrieve the remainder of the results. Continuing with the provided " +
		"token results in an inconsistent list - objects that were created, " +
		"modified, or deleted between the time the first chunk was returned " +
		"and now may show up in the list."
)

// listQuery says which state a list is to show, and which part of it.
type listQuery struct {
	selection
	exact     int64 // the version to show, 0 for the current one
	notBefore int64 // the version that must have been reached
	start     string
	limit     int64 // 0 for none
	continued bool
	number    int // of the page, from 1; 0 counts as 1
}

// page is one page of a list.
type page struct {
	records   []*record
	version   int64
	next      string // token of the next page
	remaining *int64
}

// parseVersion returns 0 for no version in particular.
func parseVersion(version string) (int64, *field.Error) {
	if version == "" || version == "0" {
		return 0, nil
	}
	parsed, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0, field.Invalid(field.NewPath("resourceVersion"), version, err.Error())
	}
	return int64(min(parsed, 1<<63-1)), nil
}

// newListQuery works out what the options mean. They are valid.
func newListQuery(opts internalversion.ListOptions, sel selection) (listQuery, error) {
	q := listQuery{selection: sel, limit: max(0, opts.Limit)}
	if opts.Continue != "" {
		return q, q.resume(opts)
	}
	version, bad := parseVersion(opts.ResourceVersion)
	if bad != nil {
		return q, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", bad))
	}
	q.notBefore = version
	if opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact ||
		opts.ResourceVersionMatch == "" && opts.Limit > 0 {
		q.exact = version
	}
	if opts.ResourceVersion == "0" {
		q.limit = 0 // the server's cache sends all it has
	}
	return q, nil
}

// resume goes on where a token says.
func (q *listQuery) resume(opts internalversion.ListOptions) error {
	t, err := decodeToken(opts.Continue)
	if err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid continue token: %v", err))
	}
	if opts.ResourceVersion != "" && opts.ResourceVersion != "0" {
		return apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	q.continued, q.start, q.number = true, q.prefix+t.Start, t.Page
	if t.Version > 0 {
		q.exact, q.notBefore = t.Version, t.Version
	}
	return nil
}

// token is what a continue token holds, in base64.
type token struct {
	APIVersion string `json:"v"`
	Version    int64  `json:"rv"` // -1 for the current one
	Start      string `json:"start"`
	// Page is the number of the page, which only faults want to know.
	Page int `json:"page,omitempty"`
}

func encodeToken(start string, version int64, page int) (string, error) {
	data, err := json.Marshal(token{APIVersion: "meta.k8s.io/v1", Version: version, Start: start, Page: page})
	if err != nil {
		return "", fmt.Errorf("informertest: encode token: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(data), nil
}

func decodeToken(encoded string) (token, error) {
	var t token
	data, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return t, fmt.Errorf("continue key is not valid: %w", err)
	}
	if err := json.Unmarshal(data, &t); err != nil {
		return t, fmt.Errorf("continue key is not valid: %w", err)
	}
	switch {
	case t.APIVersion != "meta.k8s.io/v1":
		return t, fmt.Errorf("continue key is not valid: server does not recognize this encoded version %v", t.APIVersion)
	case t.Version == 0:
		return t, errors.New("continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
	case t.Start == "":
		return t, errors.New("continue key is not valid: encoded start key empty (version meta.k8s.io/v1)")
	case path.Clean("/"+t.Start) != "/"+strings.TrimPrefix(t.Start, "/"):
		return t, fmt.Errorf("continue key is not valid: %v", t.Start)
	}
	return t, nil
}

// tooLarge says that a version has not been reached.
func tooLarge(version, current int64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", version, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version",
	}}
	return err
}

// waitFor waits until the version has been reached, but not for long.
func (s *store) waitFor(ctx context.Context, version int64) error {
	timeout := time.NewTimer(freshTimeout)
	defer timeout.Stop()
	for {
		s.mu.Lock()
		current, changed := s.version, s.changedLocked()
		s.mu.Unlock()
		if version <= current {
			return nil
		}
		select {
		case <-changed:
		case <-timeout.C:
			return tooLarge(version, current)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// listAs returns the page that the options, which are valid, ask for.
func (s *store) listAs(ctx context.Context, opts internalversion.ListOptions, sel selection) (page, error) {
	q, err := newListQuery(opts, sel)
	if err != nil {
		return page{}, err
	}
	return s.list(ctx, q)
}

// list returns a page of a list.
func (s *store) list(ctx context.Context, q listQuery) (page, error) {
	if err := s.waitFor(ctx, q.notBefore); err != nil {
		return page{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	version := s.version
	if q.exact > 0 {
		version = q.exact
	}
	if version < s.floor {
		return page{}, q.expired()
	}
	state := s.pastLocked(q.resource, q.prefix, q.start, version)
	return q.page(state, version)
}

// page takes the objects of a page from a state. The store is locked.
func (q listQuery) page(state past, version int64) (page, error) {
	p := page{version: version}
	for i := range state.keys {
		if r := state.at(i); q.matches(r) {
			p.records = append(p.records, r)
		}
		if q.limit == 0 || int64(len(p.records)) < q.limit {
			continue
		}
		if i == len(state.keys)-1 {
			break
		}
		last := p.records[len(p.records)-1].key
		next, err := encodeToken(strings.TrimPrefix(last, q.prefix)+"\x00", version, max(q.number, 1)+1)
		if err != nil {
			return page{}, err
		}
		p.next = next
		if q.all() {
			remaining := int64(len(state.keys)) - q.limit
			p.remaining = &remaining
		}
		break
	}
	return p, nil
}

// expired is the answer when the state to show is forgotten.
func (q listQuery) expired() error {
	if !q.continued {
		return apierrors.NewResourceExpired(listTooOld)
	}
	next, err := encodeToken(strings.TrimPrefix(q.start, q.prefix), -1, q.number)
	if err != nil {
		return err
	}
	expired := apierrors.NewResourceExpired(continueTooOld)
	expired.ErrStatus.ListMeta.Continue = next
	return expired
}

func (s *Server) serveList(w http.ResponseWriter, r *http.Request, t target) {
	opts, sel, err := parseListOptions(r, t)
	if err != nil {
		writeError(w, err)
		return
	}
	verb := "list"
	if opts.Watch {
		verb = "watch"
	}
	if !t.resource.allows(verb) {
		writeError(w, apierrors.NewMethodNotSupported(t.resource.groupResource(), verb))
		return
	}
	if opts.Watch {
		s.serveWatch(w, r, t, opts, sel)
		return
	}
	v, err := viewOf(r, t.resource, true)
	if err != nil {
		writeError(w, err)
		return
	}
	p, err := s.store.listAs(r.Context(), opts, sel)
	if err != nil {
		writeError(w, err)
		return
	}
	writePage(w, v, p)
}

// encode returns the JSON of the page.
func (p page) encode(v view) ([]byte, error) {
	meta, err := json.Marshal(metav1.ListMeta{
		ResourceVersion: formatVersion(p.version), Continue: p.next, RemainingItemCount: p.remaining,
	})
	if err != nil {
		return nil, fmt.Errorf("informertest: encode list: %w", err)
	}
	kind := v.kind()
	var buf bytes.Buffer
	fmt.Fprintf(&buf, `{"kind":%q,"apiVersion":%q,"metadata":%s,"items":[`, kind.Kind+"List", kind.APIVersion, meta)
	for i, r := range p.records {
		if i > 0 {
			buf.WriteByte(',')
		}
		item, err := v.item(r)
		if err != nil {
			return nil, err
		}
		buf.Write(item)
	}
	buf.WriteString("]}")
	return buf.Bytes(), nil
}
