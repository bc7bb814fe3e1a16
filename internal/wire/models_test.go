package wire

import (
	"net/http"
	"net/url"
	"testing"
)

// FuzzPage: whatever a query asks for is a stretch of the list, as long as its limit at most and with the names of its ends, or
// refused because of the limit.
func FuzzPage(f *testing.F) {
	for _, s := range []string{"", "limit=2", "after_id=b&limit=1", "before_id=c", "before_id=a", "after_id=c&before_id=b", "after_id=x", "limit=0", "limit=%zz", "before_id=&limit=1"} {
		f.Add(s)
	}
	models := []modelObject{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}}
	f.Fuzz(func(t *testing.T, query string) {
		r := &http.Request{URL: &url.URL{RawQuery: query}}
		list, err := page(models, r)
		if err != nil {
			if err.Param != "limit" {
				t.Errorf("%q: %v", query, err)
			}
			return
		}
		n := len(list.Data)
		if (n > 0) != (list.FirstID != nil) || n > 0 && (*list.FirstID != list.Data[0].ID || *list.LastID != list.Data[n-1].ID) {
			t.Errorf("%q: %+v", query, list)
		}
		for i := range list.Data[min(1, n):] {
			if list.Data[i].ID[0]+1 != list.Data[i+1].ID[0] {
				t.Errorf("%q: %s before %s", query, list.Data[i].ID, list.Data[i+1].ID)
			}
		}
		if q := r.URL.Query(); n > 0 && (q.Get("after_id") >= list.Data[0].ID || q.Get("before_id") != "" && q.Get("before_id") <= list.Data[n-1].ID) {
			t.Errorf("%q: from %s to %s", query, list.Data[0].ID, list.Data[n-1].ID)
		}
	})
}
