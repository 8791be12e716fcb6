package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// Sign returns the signature of a notice as the header webhook-signature has it: "v1," and the HMAC-SHA256 of
// id, time in seconds and body, joined by dots, in base64. A secret "whsec_..." is the key in base64, any
// other one is the key itself.
//
// Source: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
func Sign(secret, id string, at time.Time, body []byte) string {
	key := []byte(secret)
	if encoded, ok := strings.CutPrefix(secret, "whsec_"); ok {
		if decoded, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			key = decoded
		}
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
