package driver_test

import (
	"bytes"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"

	"loki/cmd/loki-temporal/driver"
	"loki/internal/base/fault"
)

const key = "0123456789abcdef0123456789abcdef"

// TestEncrypt reads what was sent with the same key and what was sent without one, and nothing that was sent with another key.
func TestEncrypt(t *testing.T) {
	with := func(key string) client.Options {
		var o client.Options
		if err := driver.Encrypt(&o, key); err != nil {
			t.Fatal(err)
		}
		return o
	}
	o := with(key)
	payloads, err := o.DataConverter.ToPayloads("a prompt", 7)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range payloads.GetPayloads() {
		if bytes.Contains(p.GetData(), []byte("prompt")) || string(p.GetMetadata()["encoding"]) != "binary/loki-aes-gcm" {
			t.Errorf("sent: %v", p)
		}
	}
	var text string
	var number int
	if err := with(key).DataConverter.FromPayloads(payloads, &text, &number); err != nil || text != "a prompt" || number != 7 {
		t.Errorf("%q, %d, %v", text, number, err)
	}
	if err := with(key+"x").DataConverter.FromPayloads(payloads, &text, &number); err == nil || !strings.Contains(err.Error(), driver.KeyVariable) {
		t.Errorf("another key: %v", err)
	}
	failure := o.FailureConverter.ErrorToFailure(fault.New(fault.Failure, "a secret message"))
	if strings.Contains(failure.String(), "secret message") {
		t.Errorf("sent: %v", failure)
	}
	if err := o.FailureConverter.FailureToError(failure); !strings.Contains(err.Error(), "a secret message") {
		t.Errorf("%v", err)
	}
	var plain client.Options
	if err := driver.Encrypt(&plain, "short"); fault.CodeOf(err) != fault.Config || plain.DataConverter != nil {
		t.Errorf("a short key: %v", err)
	}
}
