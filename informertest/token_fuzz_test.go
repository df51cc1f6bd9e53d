package informertest_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/seed-99a027e8/informer/informertest"
)

// FuzzContinue asks the server for pages with tokens and versions of any kind:
// it answers each as an API server may.
func FuzzContinue(f *testing.F) {
	srv := informertest.Start(f, informertest.Options{})
	for _, name := range []string{"a", "b", "c"} {
		if _, err := srv.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}); err != nil {
			f.Fatal(err)
		}
	}
	client, err := rest.HTTPClientFor(srv.Config())
	if err != nil {
		f.Fatal(err)
	}
	defer client.CloseIdleConnections()
	list := func(t testing.TB, token, version, limit string) (code int, names int, next string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.Config().Host+"/api/v1/pods", nil)
		if err != nil {
			t.Fatal(err)
		}
		query := request.URL.Query()
		query.Set("continue", token)
		query.Set("resourceVersion", version)
		query.Set("limit", limit)
		request.URL.RawQuery = query.Encode()
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		var pods corev1.PodList
		if err := json.NewDecoder(response.Body).Decode(&pods); err != nil {
			t.Errorf("continue=%q resourceVersion=%q limit=%q: %d, %v", token, version, limit, response.StatusCode, err)
		}
		return response.StatusCode, len(pods.Items), pods.Continue
	}
	_, _, real := list(f, "", "", "1")
	for _, token := range []string{"", real, real[:len(real)-1], real + "A", "!", "e30", "bnVsbA", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiLi4vLi4vYSJ9"} {
		for _, version := range []string{"", "0", "1", "-1", "x", "99999999999999999999"} {
			f.Add(token, version, "1")
		}
		f.Add(token, "", "-1")
	}
	f.Fuzz(func(t *testing.T, token, version, limit string) {
		code, names, next := list(t, token, version, limit)
		switch code {
		case http.StatusOK:
			if n, err := strconv.Atoi(limit); err == nil && n > 0 && version != "0" && names > n {
				t.Errorf("%d objects, and the limit was %d", names, n)
			}
			if next != "" && next == token {
				t.Errorf("the token %q leads to itself", token)
			}
		case http.StatusBadRequest, http.StatusGone, http.StatusGatewayTimeout, http.StatusUnprocessableEntity:
		default:
			t.Errorf("continue=%q resourceVersion=%q limit=%q: %d", token, version, limit, code)
		}
	})
}
