package oauth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/base/fault"
	"loki/internal/tool/mcp/oauth"
)

// replies is a server without a network, so that time can be its own.
type replies func(w http.ResponseWriter, r *http.Request)

func (f replies) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	f(w, req)
	if w.Code == unreachable {
		return nil, errors.New("connection refused")
	}
	resp := w.Result()
	resp.Request = req
	return resp, nil
}

// unreachable is the status of a reply that does not come.
const unreachable = 599

func tells(status int, text string) replies {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, text)
	}
}

func refuses(code string) replies {
	return tells(http.StatusBadRequest, `{"error":"`+code+`","error_description":"so it is"}`)
}

func TestDeviceTakesItsTime(t *testing.T) {
	const code = `{"device_code":"d","user_code":"AB-CD","verification_uri":"https://example.com/d","verification_uri_complete":"https://example.com/d?c=AB-CD","expires_in":600,"interval":7}`
	token := tells(http.StatusOK, `{"access_token":"granted","token_type":"Bearer","refresh_token":"r","expires_in":3600}`)
	pending, slower, gone := refuses("authorization_pending"), refuses("slow_down"), tells(unreachable, "")
	always := func(r replies) []replies { return []replies{r, nil} }
	for _, tt := range []struct {
		name   string
		code   string    // the first answer; "" is the one above
		poll   []replies // the further ones; before a nil the last is repeated
		asked  []time.Duration
		took   time.Duration
		want   string // of the error
		status int    // of the first answer; 0 is OK
	}{
		{name: "at_once", poll: []replies{token}, asked: seconds(7)},
		{name: "pending", poll: []replies{pending, pending, token}, asked: seconds(7, 14, 21)},
		{name: "slow_down", poll: []replies{slower, pending, slower, token}, asked: seconds(7, 19, 31, 48)},
		{name: "default_interval", code: strings.Replace(code, `,"interval":7`, "", 1), poll: []replies{pending, token}, asked: seconds(5, 10)},
		{name: "unreachable_for_a_while", poll: []replies{pending, gone, gone, token}, asked: seconds(7, 14, 28, 56)},
		{name: "unreachable", poll: always(gone), took: 7 * 63 * time.Second, want: "connection refused"},
		{name: "denied", poll: []replies{pending, refuses("access_denied")}, asked: seconds(7, 14), want: "refused: the server answers: access_denied so it is"},
		{name: "expired", poll: []replies{refuses("expired_token")}, asked: seconds(7), want: "the code expired before it was entered"},
		{name: "expired_by_the_clock", poll: always(pending), took: 600 * time.Second, want: "the code expired before it was entered"},
		{name: "other_error", poll: []replies{refuses("invalid_client")}, asked: seconds(7), want: "the server answers: invalid_client so it is"},
		{name: "no_json", poll: []replies{tells(http.StatusBadGateway, "<html>d hush</html>")}, asked: seconds(7), want: "the server answers: 502 Bad Gateway"},
		{name: "no_code", code: `{"error":"unauthorized_client"}`, status: http.StatusBadRequest, want: "the server answers: unauthorized_client"},
		{name: "no_code_and_status_ok", code: `{"error":"unauthorized_client"}`, want: "the server answers: unauthorized_client"},
		{name: "code_without_address", code: `{"device_code":"d","user_code":"u"}`, want: "lacks the code"},
		{name: "code_is_no_json", code: `hush`, want: "cannot be read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				var asked []time.Duration
				p := oauth.Provider{
					Name: "c", Flow: oauth.Device, ClientID: "id", ClientSecret: "hush", TokenURL: "https://example.com/token",
					DeviceURL: "https://example.com/device", Scopes: []string{"s"}, ExtraParams: []oauth.Pair{{"audience", "x"}},
				}
				p.HTTP = &http.Client{Transport: replies(func(w http.ResponseWriter, r *http.Request) {
					if err := r.ParseForm(); err != nil {
						t.Error(err)
					}
					if r.URL.Path == "/device" {
						if f := r.PostForm; f.Get("client_id") != "id" || f.Get("scope") != "s" || f.Get("audience") != "x" || f.Has("client_secret") {
							t.Errorf("form %v", f)
						}
						answer, status := tt.code, tt.status
						if answer == "" {
							answer = code
						}
						if status == 0 {
							status = http.StatusOK
						}
						tells(status, answer)(w, r)
						return
					}
					if r.PostForm.Get("device_code") != "d" {
						t.Errorf("form %v", r.PostForm)
					}
					asked = append(asked, time.Since(begin))
					poll := tt.poll[0]
					if len(tt.poll) > 1 && tt.poll[1] != nil {
						tt.poll = tt.poll[1:]
					}
					poll(w, r)
				})}
				got, err := oauth.Login(t.Context(), p, user{visit: func(address, code string) error {
					if !strings.HasPrefix(address, "https://example.com/d?c=") || code != "AB-CD" {
						return fmt.Errorf("shown %s %s", address, code)
					}
					return nil
				}})
				switch {
				case tt.want == "" && (err != nil || got.AccessToken != "granted"):
					t.Fatalf("%v, %v", got, err)
				case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hush") || fault.CodeOf(err) != fault.Provider):
					t.Fatalf("error %v", err)
				}
				if tt.asked != nil && fmt.Sprint(asked) != fmt.Sprint(tt.asked) {
					t.Errorf("asked after %v, want %v", asked, tt.asked)
				}
				if took := time.Since(begin); tt.took != 0 && took != tt.took {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

func seconds(list ...int) []time.Duration {
	var ds []time.Duration
	for _, s := range list {
		ds = append(ds, time.Duration(s)*time.Second)
	}
	return ds
}

func TestDeviceCanBeBrokenOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		p := oauth.Provider{Name: "c", Flow: oauth.Device, ClientID: "id", TokenURL: "https://example.com/token", DeviceURL: "https://example.com/device"}
		p.HTTP = &http.Client{Transport: replies(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/device" {
				tells(http.StatusOK, `{"device_code":"d","user_code":"u","verification_uri":"https://example.com","expires_in":600}`)(w, r)
				return
			}
			cancel()
			refuses("authorization_pending")(w, r)
		})}
		_, err := oauth.Login(ctx, p, user{visit: func(string, string) error { return nil }})
		if fault.CodeOf(err) != fault.Canceled {
			t.Errorf("error %v", err)
		}
	})
}
