package gemini

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"

	"loki/internal/provider"
	"loki/internal/provider/wire"
)

// maxRetryDelay bounds what the API may ask for.
const maxRetryDelay = 24 * time.Hour

// withRetryInfo completes err with the time to wait, which Google's APIs tell in the
// details of the error. cause is what err was made from.
func withRetryInfo(err, cause error) error {
	e, ok := errors.AsType[*provider.Error](err)
	rejected, found := errors.AsType[*wire.Rejection](cause)
	if !ok || !found || !provider.Retryable(e) || e.RetryAfter != 0 {
		return err
	}
	if d := retryDelay(rejected.Body); d > 0 {
		told := *e
		told.RetryAfter = d
		return &told
	}
	return err
}

// retryDelay returns the delay of the google.rpc.RetryInfo in an error document, which
// some methods put into an array; 0 if there is none.
func retryDelay(doc []byte) time.Duration {
	if doc = bytes.TrimSpace(doc); bytes.HasPrefix(doc, []byte("[")) {
		var list []json.RawMessage
		if json.Unmarshal(doc, &list) != nil || len(list) == 0 {
			return 0
		}
		doc = list[0]
	}
	var reply struct {
		Error struct {
			Details []struct {
				RetryDelay string `json:"retryDelay"`
			} `json:"details"`
		} `json:"error"`
	}
	if json.Unmarshal(doc, &reply) != nil {
		return 0
	}
	for _, detail := range reply.Error.Details {
		if d, err := time.ParseDuration(detail.RetryDelay); err == nil && d > 0 {
			return min(d, maxRetryDelay)
		}
	}
	return 0
}
