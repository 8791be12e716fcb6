package web

import (
	"testing"
)

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost": true, "127.0.0.1": true, "127.9.8.7": true, "::1": true, "[::1]": true, "::ffff:127.0.0.1": true,
		"": false, "[]": false, "[::1": false, "localhost.example.com": false, "127.0.0.1.example.com": false, "0.0.0.0": false, "10.0.0.1": false, "::": false,
		"localhost:80": false, "127.0.0.1:80": false,
	} {
		if got := Loopback(host); got != want {
			t.Errorf("Loopback(%q) is %v", host, got)
		}
	}
}
