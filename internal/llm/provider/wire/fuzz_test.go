package wire

import (
	"net/http"
	"testing"
)

// FuzzFailure feeds arbitrary error bodies and header fields.
func FuzzFailure(f *testing.F) {
	f.Add(400, "5", []byte(`{"error":{"message":"a","type":"b","code":5}}`))
	f.Add(502, "1e400", []byte("<html><script>x</html"))
	f.Add(429, "Wed, 21 Oct 2026 07:28:30 GMT", []byte(`[{"error":"try again in 5s"}]`))
	f.Add(500, "-1", []byte(`{"errors":[{"message":{"a":1}}],"detail":[]}`))
	f.Fuzz(func(t *testing.T, status int, field string, body []byte) {
		h := http.Header{"Retry-After": {field}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {field}}
		e := statusError(&http.Response{StatusCode: status, Header: h}, body, "http://server.test")
		if e.Kind == "" || e.Msg == "" || e.RetryAfter < 0 || e.RetryAfter > maxRetryAfter {
			t.Errorf("error %+v", e)
		}
		if len(e.Msg) > 10*maxMessage {
			t.Errorf("a message of %d bytes", len(e.Msg))
		}
		if err := ReplyError(body); err != nil && err.Error() == "" {
			t.Errorf("error %#v", err)
		}
	})
}
