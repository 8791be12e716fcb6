package web

import (
	"net/url"
	"testing"
)

func TestInward(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from, to string
		want     bool
	}{
		{"http://127.0.0.1:1/a", "http://127.0.0.1:1/b", false},
		{"http://127.0.0.1:1/a", "http://127.0.0.1:2/b", true},
		{"http://localhost:1/a", "http://[::1]:2/b", true},
		{"http://192.168.1.2/a", "http://192.168.1.3/b", false},
		{"http://192.168.1.2/a", "http://127.0.0.1/b", true},
		{"https://8.8.8.8/a", "http://192.168.1.3/b", true},
		{"https://8.8.8.8/a", "http://169.254.169.254/latest", true},
		{"https://8.8.8.8/a", "https://1.1.1.1/b", false},
		{"http://8.8.8.8/a", "http://8.8.8.8:80/b", false},
	} {
		from, err := url.Parse(tt.from)
		if err != nil {
			t.Fatal(err)
		}
		to, err := url.Parse(tt.to)
		if err != nil {
			t.Fatal(err)
		}
		if got := Inward(t.Context(), from, to); got != tt.want {
			t.Errorf("from %s to %s: %v", tt.from, tt.to, got)
		}
	}
}
