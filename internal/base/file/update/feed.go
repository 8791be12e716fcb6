package update

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/web"
)

// feed is where releases come from.
type feed struct {
	base   *url.URL // its path ends with a slash
	client *http.Client
	agent  string
	limits limits
}

// release is a release as a feed describes it.
type release struct {
	Tag    string  `json:"tag_name"`
	Assets []asset `json:"assets"` // nil if the feed does not list them
}

type asset struct {
	Name    string `json:"name"`
	Address string `json:"browser_download_url"`
}

// errStatus is an answer with another status than 200.
type errStatus int

func (e errStatus) Error() string {
	return fmt.Sprintf("status %d %s", int(e), http.StatusText(int(e)))
}

// newFeed returns the feed at address.
func newFeed(address string, o Options) (*feed, error) {
	base, err := url.Parse(strings.TrimRight(address, "/") + "/")
	if err == nil {
		err = requireEncryption(base, "http")
	}
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "release_feed").
			WithHint("it begins with https://, such as https://api.github.com/repos/OWNER/NAME/releases")
	}
	f := &feed{base: base, agent: "loki/" + o.Version, limits: o.limits}
	f.client = &http.Client{Transport: o.Transport, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) >= 5 {
			return errors.New("redirected too often")
		}
		return requireEncryption(req.URL, base.Scheme)
	}}
	return f, nil
}

// requireEncryption refuses an address without encryption. On this computer it is allowed, unless the feed
// has it.
func requireEncryption(u *url.URL, scheme string) error {
	switch {
	case u.Host == "":
		return fmt.Errorf("%q is not an address of the web", u.Redacted())
	case u.Scheme == "https", u.Scheme == "http" && scheme == "http" && web.Loopback(u.Hostname()):
		return nil
	}
	return fmt.Errorf("%s is not encrypted", u.Redacted())
}

// release describes the release with a tag, or the newest one without.
func (f *feed) release(ctx context.Context, tag string) (release, error) {
	where := f.base.JoinPath("latest")
	if tag != "" {
		where = f.base.JoinPath("tags", url.PathEscape(tag))
	}
	var r release
	text, err := f.read(ctx, where)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	switch {
	case errors.Is(err, errStatus(http.StatusNotFound)):
		what := "release " + tag
		if tag == "" {
			what = "release"
		}
		return r, fault.Wrap(fault.NotFound, err, "there is no %s at %s", what, f.base.Redacted()).WithHint("check the version and release_feed")
	case err != nil:
		return r, fault.Wrap(codeOf(err), err, "cannot read %s", where.Redacted()).WithHint("check the network, the proxy and release_feed")
	case r.Tag == "" || tag != "" && r.Tag != tag || strings.ContainsFunc(r.Tag, func(c rune) bool { return c <= ' ' || c >= 0x7f || c == '/' || c == '\\' }):
		return r, fault.New(fault.Failure, "%s does not describe a release, but %q", where.Redacted(), r.Tag).WithHint("check release_feed")
	}
	return r, nil
}

// address returns where an asset is.
func (f *feed) address(r release, name string) (*url.URL, error) {
	where := f.base.JoinPath("download", url.PathEscape(r.Tag), name)
	for _, a := range r.Assets {
		if a.Name == name && a.Address != "" {
			u, err := f.base.Parse(a.Address)
			if err != nil {
				return nil, err
			}
			where = u
		}
	}
	return where, requireEncryption(where, f.base.Scheme)
}

// document returns a small asset.
func (f *feed) document(ctx context.Context, r release, name string) ([]byte, error) {
	where, err := f.address(r, name)
	if err != nil {
		return nil, err
	}
	return f.read(ctx, where)
}

// read returns the document at where.
func (f *feed) read(ctx context.Context, where *url.URL) ([]byte, error) {
	var text strings.Builder
	err := f.get(ctx, where, f.limits.document, &text, nil)
	return []byte(text.String()), err
}

// download stores an asset as file. Its SHA-256 sum must be sum, in hexadecimal.
func (f *feed) download(ctx context.Context, r release, name, sum, file string, progress func(done, all int64)) error {
	where, err := f.address(r, name)
	if err != nil {
		return fault.Wrap(fault.Failure, err, "%s of release %s", name, r.Tag)
	}
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	hash := sha256.New()
	if err := errors.Join(f.get(ctx, where, f.limits.archive, io.MultiWriter(out, hash), progress), out.Close()); err != nil {
		return fault.Wrap(codeOf(err), err, "cannot download %s", where.Redacted()).WithHint("nothing was replaced; try again later")
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != sum {
		return fault.New(fault.Failure, "the checksum of %s is wrong: it is %s, but the release says %s", where.Redacted(), got, sum).
			WithHint("nothing was replaced; try again, and report it to the feed's owner if it stays so")
	}
	return nil
}

// get copies what is at where to w: at most limit bytes. No byte for limits.silence ends it with
// an error.
func (f *feed) get(ctx context.Context, where *url.URL, limit int64, w io.Writer, progress func(done, all int64)) error {
	silent := fmt.Errorf("no data within %s", f.limits.silence)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	clock := time.AfterFunc(f.limits.silence, func() { cancel(silent) })
	defer clock.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", f.agent)
	req.Header.Set("Accept", "application/octet-stream, application/json;q=0.9")
	resp, err := f.client.Do(req)
	if err == nil {
		defer resp.Body.Close()
		err = f.copy(w, resp, limit, func(done int64) {
			clock.Reset(f.limits.silence)
			if progress != nil {
				progress(done, resp.ContentLength)
			}
		})
	}
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err // the caller names the address
	}
	return err
}

// copy copies the body of an answer, and calls came after each piece.
func (f *feed) copy(w io.Writer, resp *http.Response, limit int64, came func(done int64)) error {
	if resp.StatusCode != http.StatusOK {
		return errStatus(resp.StatusCode)
	}
	tooLarge := fmt.Errorf("more than %d MiB, which is too much", limit>>20)
	if resp.ContentLength > limit {
		return tooLarge
	}
	piece := make([]byte, 64<<10)
	for done := int64(0); ; {
		n, err := resp.Body.Read(piece)
		done += int64(n)
		if done > limit {
			return tooLarge
		}
		if _, err := w.Write(piece[:n]); err != nil {
			return err
		}
		came(done)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// codeOf returns Canceled if err is that of a context, and Failure otherwise.
func codeOf(err error) fault.Code {
	if errors.Is(err, context.Canceled) {
		return fault.Canceled
	}
	return fault.Failure
}
