package wire_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"loki/internal/llm/provider"
	"loki/internal/llm/provider/providertest/openaitest"
	"loki/internal/llm/provider/providertest/wiretest"
	"loki/internal/llm/provider/wire"
)

// TestFailures maps statuses and bodies to kinds and messages.
func TestFailures(t *testing.T) {
	const limit, auth, overflow = provider.RateLimited, provider.Authentication, provider.ContextOverflow
	const transient, refused, invalid = provider.Transient, provider.Refused, provider.Invalid
	for _, tt := range []struct {
		name   string
		status int
		body   string
		kind   provider.ErrorKind
		want   string
	}{
		// The forms of error bodies.
		{"message_and_type", 400, `{"error":{"message":"No.","type":"invalid_request_error","param":null,"code":null}}`, invalid, "No. (type: invalid_request_error) (HTTP 400)"},
		{"message_and_code", 404, `{"error":{"message":"No model","code":"model_not_found"}}`, invalid, "No model (code: model_not_found) (HTTP 404)"},
		{"message_and_number", 502, `{"error":{"message":"Provider returned error","code":502,"metadata":{"raw":"boom"}}}`, transient, "Provider returned error: boom (HTTP 502)"},
		{"message_only", 400, `{"error":{"message":"No."}}`, invalid, "No. (HTTP 400)"},
		{"errors_list", 400, `{"errors":[{"code":7003,"message":"No route"}],"success":false}`, invalid, "No route (status: 7003) (HTTP 400)"},
		{"list_with_status", 400, `[{"error":{"code":400,"message":"Bad","status":"INVALID_ARGUMENT"}}]`, invalid, "Bad (status: INVALID_ARGUMENT) (HTTP 400)"},
		{"detail_and_status", 422, `{"title":"x","detail":"Unprocessable","status":422}`, invalid, "Unprocessable (status: 422) (HTTP 422)"},
		{"detail", 404, `{"detail":"Not Found"}`, invalid, "Not Found (HTTP 404)"},
		{"detail_list", 422, `{"detail":[{"loc":["body","x"],"msg":"field required"}]}`, invalid, `[{"loc":["body","x"],"msg":"field required"}] (HTTP 422)`},
		{"error_text", 404, `{"error":"model 'x' not found"}`, invalid, "model 'x' not found (HTTP 404)"},
		{"message_text", 400, `{"object":"error","message":"bad","type":"invalid_request_error","code":"3230"}`, invalid, "bad (HTTP 400)"},
		{"message_object", 422, `{"object":"error","message":{"detail":[{"msg":"extra"}]}}`, invalid, `{"detail":[{"msg":"extra"}]} (HTTP 422)`},
		{"other_json", 400, `{"reason":"unknown"}`, invalid, `{"reason":"unknown"} (HTTP 400)`},
		{"plain_text", 500, "upstream connect error\n", transient, "upstream connect error (HTTP 500)"},
		{"empty_body", 503, "", transient, "service unavailable (HTTP 503)"},
		{"empty_body_unknown_status", 499, "", invalid, "request failed (HTTP 499)"},
		{"html_page", 502, "<!doctype html><html><head><title>502 Bad Gateway</title><style>p{a:b}</style><script>var a=1</script></head>\n<body><p>cloud &amp; co</p></body></html>", transient, "502 Bad Gateway cloud & co (HTTP 502)"},
		{"long_html_page", 502, "<p>" + strings.Repeat("é", 1000), transient, strings.Repeat("é", 150) + "… (HTTP 502)"},
		{"long_text", 400, strings.Repeat("x", 5000), invalid, strings.Repeat("x", 2000) + "… (HTTP 400)"},

		// By status.
		{"unauthorized", 401, `{"error":{"message":"who?"}}`, auth, "who? (HTTP 401)"},
		{"payment_required", 402, `{"error":{"message":"Insufficient Balance","type":"unknown_error"}}`, auth, "Insufficient Balance (type: unknown_error) (HTTP 402)"},
		{"forbidden", 403, `{"error":{"message":"not for you"}}`, auth, "not for you (HTTP 403)"},
		{"request_timeout", 408, `{"error":{"message":"slow"}}`, transient, "slow (HTTP 408)"},
		{"conflict", 409, `{"error":{"message":"busy"}}`, transient, "busy (HTTP 409)"},
		{"too_large", 413, "", overflow, "request entity too large (HTTP 413)"},
		{"too_many", 429, `{"error":{"message":"slow down"}}`, limit, "slow down (HTTP 429)"},
		{"not_implemented", 501, `{"error":{"message":"no such thing"}}`, invalid, "no such thing (HTTP 501)"},
		{"overloaded", 529, `{"error":{"message":"overloaded"}}`, transient, "overloaded (HTTP 529)"},

		// By words.
		{"no_money", 429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, auth, "You exceeded your current quota (type: insufficient_quota) (HTTP 429)"},
		{"no_money_by_code", 429, `{"error":{"message":"You have no credits","type":"billing_error","code":"credit_balance_exhausted"}}`, auth, "You have no credits (type: billing_error) (HTTP 429)"},
		{"month_used_up", 429, `{"error":{"message":"You've reached the monthly usage limit for this billing cycle.","type":"rate_limit_error"}}`, auth, "You've reached the monthly usage limit for this billing cycle. (type: rate_limit_error) (HTTP 429)"},
		{"key_as_400", 400, `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`, auth, "API key not valid. Please pass a valid API key. (status: INVALID_ARGUMENT) (HTTP 400)"},
		{"azure_filter", 400, `{"error":{"message":"The response was filtered","type":null,"code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, refused, "The response was filtered (code: content_filter) (HTTP 400)"},
		{"moderation_as_403", 403, `{"error":{"code":403,"message":"Your chosen model requires moderation and your input was flagged"}}`, refused, "Your chosen model requires moderation and your input was flagged (HTTP 403)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := openaitest.New(t)
			server.Script(wiretest.Status(tt.status, tt.body))
			_, err := post(t, wire.Options{}, server.URL())
			e, ok := errors.AsType[*provider.Error](err)
			if !ok || e.Kind != tt.kind || e.Status != tt.status || e.Error() != tt.want {
				t.Errorf("error %+v\n got %q\nwant %s %q", e, err, tt.kind, tt.want)
			}
			if n := len(server.Requests()); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
}

// TestContextOverflow has what servers say about conversations that are too long.
func TestContextOverflow(t *testing.T) {
	for status, bodies := range map[int][]string{
		400: {
			`{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`,
			`{"error":{"message":"Your input exceeds the context window of this model."}}`,
			`{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error"}}`,
			`{"error":"Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is greater than the context length"}`,
			`{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_error"}`,
			`{"error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}`,
			`{"error":{"message":"Invalid request: Your request exceeded model token limit: 8192 (requested: 9000)","type":"invalid_request_error"}}`,
			`{"error":{"message":"invalid params, context window exceeds limit","type":"bad_request"}}`,
			`{"error":{"code":"1261","message":"Prompt exceeds max length"}}`,
			`{"error":{"message":"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]"}}`,
			`[{"error":{"code":400,"message":"The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}]`,
			`{"error":{"message":"Please reduce the length of the messages or completion.","code":"context_length_exceeded"}}`,
			"{\"error\":{\"message\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193\"}}",
			`{"error":{"message":"prompt is too long: 213462 tokens > 200000 maximum"}}`,
			`{"error":{"message":"Input length 131393 exceeds the maximum allowed input length of 131040 tokens."}}`,
		},
		413: {`{"error":{"code":"tokens_limit_reached","message":"Request body too large for gpt-4o model. Max size: 8000 tokens."}}`, ""},
		429: {`{"error":{"message":"Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000.","type":"tokens","code":"rate_limit_exceeded"}}`},
		500: {`{"error":{"message":"prompt too long; exceeded max context length by 4 tokens"}}`},
		503: {`{"error":{"message":"OpenAIException - Requested token count exceeds the model's maximum context length of 131072 tokens."}}`},
	} {
		for i, body := range bodies {
			t.Run(fmt.Sprintf("%d_%d", status, i), func(t *testing.T) {
				if e := rejected(t, wiretest.Status(status, body)); e.Kind != provider.ContextOverflow {
					t.Errorf("error %+v for %s", e, body)
				}
			})
		}
	}
}

func TestRetryAfter(t *testing.T) {
	const date = "Wed, 21 Oct 2026 07:28:00 GMT"
	at := time.Date(2026, 10, 21, 7, 28, 0, 0, time.UTC)
	for _, tt := range []struct {
		name   string
		fields []string
		msg    string
		want   time.Duration
	}{
		{"nothing", nil, "", 0},
		{"seconds", []string{"Retry-After", "20"}, "", 20 * time.Second},
		{"fraction", []string{"Retry-After", "0.5"}, "", 500 * time.Millisecond},
		{"date", []string{"Retry-After", "Wed, 21 Oct 2026 07:28:30 GMT"}, "", 30 * time.Second},
		{"date_in_the_past", []string{"Retry-After", "Wed, 21 Oct 2026 07:27:30 GMT"}, "", 0},
		{"milliseconds_first", []string{"Retry-After-Ms", "1500", "Retry-After", "2"}, "", 1500 * time.Millisecond},
		{"negative", []string{"Retry-After", "-5"}, "", 0},
		{"nonsense", []string{"Retry-After", "soon"}, "", 0},
		{"endless", []string{"Retry-After", "1e300"}, "", 24 * time.Hour},
		{"used_up_limit", []string{
			"X-RateLimit-Remaining-Requests", "5", "X-RateLimit-Reset-Requests", "1h",
			"X-RateLimit-Remaining-Tokens", "0", "X-RateLimit-Reset-Tokens", "6m0.5s",
		}, "", 6*time.Minute + 500*time.Millisecond},
		{"limit_not_used_up", []string{"X-RateLimit-Remaining-Requests", "5", "X-RateLimit-Reset-Requests", "1h"}, "", 0},
		{"reset_in_seconds", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "7"}, "", 7 * time.Second},
		{"reset_as_unix_time", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", fmt.Sprint(at.Unix() + 9)}, "", 9 * time.Second},
		{"reset_in_unix_ms", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", fmt.Sprint(at.UnixMilli() + 900)}, "", 900 * time.Millisecond},
		{"in_words", nil, "Rate limit reached. Please try again in 1.35s. Visit x", 1350 * time.Millisecond},
		{"in_other_words", nil, "Please retry in 34.074824224s.", 34074824224},
		{"in_seconds", nil, "Your requests have exceeded the token rate limit. Please retry after 45 seconds.", 45 * time.Second},
		{"in_one_minute", nil, "Try again in 1 minute", time.Minute},
		{"in_no_words", nil, "Please try again in a while", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fields := append([]string{"Date", date}, tt.fields...)
			if got := rejected(t, wiretest.Status(429, `{"error":{"message":"`+tt.msg+`"}}`, fields...)).RetryAfter; got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// TestRetryAfterOnlyWhereWaitingHelps: a wait after an invalid request would
// make callers repeat it.
func TestRetryAfterOnlyWhereWaitingHelps(t *testing.T) {
	for status, want := range map[int]time.Duration{400: 0, 401: 0, 429: 9 * time.Second, 503: 9 * time.Second} {
		if got := rejected(t, wiretest.Status(status, `{"error":{"message":"no"}}`, "Retry-After", "9")).RetryAfter; got != want {
			t.Errorf("status %d: %v, want %v", status, got, want)
		}
	}
}

// TestReplyError finds the failures inside successful responses, and nothing else.
func TestReplyError(t *testing.T) {
	for _, tt := range []struct {
		name, doc string
		want      string // empty for no failure
		kind      provider.ErrorKind
	}{
		{"reply", `{"choices":[],"error":null}`, "", ""},
		{"message_and_detail_of_a_reply", `{"message":"hi","detail":"the word error"}`, "", ""},
		{"empty_error", `{"error":{}}`, "", ""},
		{"no_json", `error`, "", ""},
		{"array_of_replies", `[{"candidates":[]},{"error":{"message":"later"}}]`, "", ""},
		{"error", `{"error":{"message":"Overloaded","type":"overloaded_error"}}`, "Overloaded (type: overloaded_error)", provider.Transient},
		{"typed_event", `{"type":"error","code":"rate_limit_exceeded","message":"Slow down"}`, "Slow down", provider.RateLimited},
		{"object", `{"object":"error","message":"bad","type":"invalid_request_error"}`, "bad", provider.Invalid},
		{"array", `[{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}]`, "busy (status: UNAVAILABLE)", provider.Transient},
		{"status_inside", `{"error":{"code":400,"message":"bad"}}`, "bad", provider.Invalid},
		{"unknown_form", `{"error":{"reason":5}}`, `the server reports an error of unknown form: {"error":{"reason":5}}`, provider.BadReply},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := wire.ReplyError([]byte(tt.doc))
			if tt.want == "" {
				if err != nil {
					t.Errorf("error = %v", err)
				}
				return
			}
			e, ok := errors.AsType[*provider.Error](err)
			if !ok || e.Msg != tt.want || e.Kind != tt.kind {
				t.Errorf("error = %+v, want %s %q", err, tt.kind, tt.want)
			}
		})
	}
}

func TestComplaint(t *testing.T) {
	for _, tt := range []struct {
		msg, typ, code, want string
		kind                 provider.ErrorKind
	}{
		{"Overloaded", "overloaded_error", "", "Overloaded (type: overloaded_error)", provider.Transient},
		{"Slow", "", "rate_limit_exceeded", "Slow (code: rate_limit_exceeded)", provider.RateLimited},
		{"Bad", "", "400", "Bad", provider.Invalid},
		{"", "serverException", "", "the server reports an error: serverException", provider.Transient},
		{"", "", "", "the server reports an error: unknown", provider.Transient},
	} {
		e, ok := errors.AsType[*provider.Error](wire.Complaint(tt.msg, tt.typ, tt.code))
		if !ok || e.Msg != tt.want || e.Kind != tt.kind {
			t.Errorf("%+v: error = %+v", tt, e)
		}
	}
}

func TestLacking(t *testing.T) {
	for doc, want := range map[string]string{
		`{"message":"model is loading"}`: "model is loading",
		`{"data":[]}`:                    `the reply holds no embeddings: {"data":[]}`,
		"<html><b>Sign in</b>":           "the reply holds no embeddings: Sign in",
		"":                               "the reply holds no embeddings",
	} {
		if err := wire.MissingError("embeddings", []byte(doc)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", doc, err, want)
		}
	}
}
