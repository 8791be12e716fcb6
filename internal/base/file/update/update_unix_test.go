//go:build unix

package update

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/file/update/updatetest"
)

var archive = archiveName(runtime.GOOS, runtime.GOARCH)

const old = "#!/bin/sh\necho loki 0.1.0\n"

// fixture is an installed program and a feed with a newer release of it.
type fixture struct {
	*updatetest.Feed
	options  Options
	warnings []string
}

func newFixture(t *testing.T, tls bool) *fixture {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{Feed: updatetest.New(t, tls)}
	f.Release("v0.2.0", archive, updatetest.Member{Name: "README.md", Body: "read me"}, updatetest.Program("0.2.0"))
	f.options = Options{
		Version: "0.1.0", Executable: filepath.Join(dir, "loki"), Feed: f.URL, Keys: f.Key,
		Transport: f.Transport(),
		Warn:      func(text string) { f.warnings = append(f.warnings, text) },
	}
	if err := os.WriteFile(f.options.Executable, []byte(old), 0o751); err != nil {
		t.Fatal(err)
	}
	return f
}

// installed returns what the program's file holds, and checks that nothing lies beside it.
func (f *fixture) installed(t *testing.T) string {
	t.Helper()
	dir := filepath.Dir(f.options.Executable)
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v lies in the directory (%v)", entries, err)
	}
	info, err := os.Stat(f.options.Executable)
	if err != nil || info.Mode() != 0o751 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
	text, err := os.ReadFile(f.options.Executable)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	older := func(f *fixture) { f.Release("v0.0.9", archive, updatetest.Program("0.0.9")) }
	for _, tt := range []struct {
		name, version string
		prepare       func(*fixture)
		want          string // the outcome
		program       string // what the program prints then, behind "loki "
		warning       string
	}{
		{name: "newest", want: "Loki is updated from 0.1.0 to 0.2.0. Restart it to use the new version.", program: "0.2.0"},
		{name: "latest", version: " Latest ", want: "Loki is updated from 0.1.0 to 0.2.0. Restart it to use the new version.", program: "0.2.0"},
		{name: "by_number", version: "0.2.0", want: "Loki is updated from 0.1.0 to 0.2.0. Restart it to use the new version.", program: "0.2.0"},
		{name: "by_tag", version: "v0.2.0", want: "Loki is updated from 0.1.0 to 0.2.0. Restart it to use the new version.", program: "0.2.0"},
		{name: "same", version: "0.1.0", prepare: func(f *fixture) { f.Release("v0.1.0", archive) }, want: "Loki 0.1.0 is already up to date.", program: "0.1.0"},
		{name: "not_newer", prepare: older, want: "Loki 0.1.0 is newer than the newest release, 0.0.9.", program: "0.1.0"},
		{
			name: "back", version: "0.0.9", prepare: older, want: "Loki is updated from 0.1.0 to 0.0.9. Restart it to use the new version.", program: "0.0.9",
			warning: "0.0.9 is older than 0.1.0, which is running",
		},
		{
			name: "not_a_number", version: "nightly", want: "Loki is updated from 0.1.0 to nightly. Restart it to use the new version.", program: "0.3.0-dev",
			prepare: func(f *fixture) { f.Release("nightly", archive, updatetest.Program("0.3.0-dev")) },
		},
		{
			name: "assets_elsewhere", want: "Loki is updated from 0.1.0 to 0.2.0. Restart it to use the new version.", program: "0.2.0",
			prepare: func(f *fixture) {
				f.Serve("/elsewhere", updatetest.Archive(updatetest.Program("0.2.0")))
				f.Serve("/latest", fmt.Appendf(nil, `{"tag_name": "v0.2.0", "assets": [{"name": %q, "browser_download_url": "elsewhere"}]}`, archive))
				f.sums("v0.2.0", updatetest.Archive(updatetest.Program("0.2.0")))
			},
		},
		{
			name: "rotated_key", want: "Loki is updated from 0.1.0 to 0.2.0. Restart it to use the new version.", program: "0.2.0",
			prepare: func(f *fixture) {
				f.options.Keys = "RWRDQ/9FhZUGqBqSmCFO2Jy+Yhu3qf4R8cXM7LYjZ8HO+lQWg1SiNMSI " + f.Key
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, false)
			if tt.prepare != nil {
				tt.prepare(f)
			}
			out, err := Run(t.Context(), f.options, tt.version)
			if err != nil {
				t.Fatal(err)
			}
			if out.Text() != tt.want {
				t.Errorf("outcome %q, want %q", out.Text(), tt.want)
			}
			if got := f.installed(t); !strings.Contains(got, "loki "+tt.program+"\n") {
				t.Errorf("the program is %q", got)
			}
			if got := strings.Join(f.warnings, "\n"); got != tt.warning {
				t.Errorf("warnings %q", got)
			}
		})
	}
}

// sums publishes signed checksums for an archive.
func (f *fixture) sums(tag string, packed []byte) {
	sums := fmt.Appendf(nil, "%x *%s\n", sha256.Sum256(packed), archive)
	f.Serve(updatetest.Path(tag, sumsName), sums)
	f.Serve(updatetest.Path(tag, signatureName), f.Sign(sums, "loki "+tag))
}

// members publishes a release whose archive is signed and holds other members.
func members(list ...updatetest.Member) func(*fixture) {
	return func(f *fixture) { f.Release("v0.2.0", archive, list...) }
}

// TestRefusals: whatever is wrong with a release, the program stays as it is.
func TestRefusals(t *testing.T) {
	t.Parallel()
	file := updatetest.Path("v0.2.0", archive)
	for _, tt := range []struct {
		name, version string
		tls           bool
		prepare       func(*fixture)
		code          fault.Code
		want          string
	}{
		{name: "no_feed", prepare: func(f *fixture) { f.options.Feed = "" }, code: fault.Config, want: "does not know where its releases are"},
		{name: "no_key", prepare: func(f *fixture) { f.options.Keys = "" }, code: fault.Config, want: "no key to verify releases with"},
		{name: "bad_key", prepare: func(f *fixture) { f.options.Keys = "RWQ" }, code: fault.Config, want: "not a public key"},
		{name: "feed_not_encrypted", prepare: func(f *fixture) { f.options.Feed = "http://203.0.113.1/releases" }, code: fault.Config, want: "is not encrypted"},
		{name: "feed_a_file", prepare: func(f *fixture) { f.options.Feed = "/srv/releases" }, code: fault.Config, want: "is not an address of the web"},
		{name: "no_such_release", version: "9.9.9", code: fault.NotFound, want: "there is no release v9.9.9 at"},
		{name: "no_release", prepare: func(f *fixture) { f.Handle("/latest", nil) }, code: fault.NotFound, want: "there is no release at"},
		{name: "a_page", prepare: func(f *fixture) { f.Serve("/latest", []byte("<html>")) }, code: fault.Failure, want: "invalid character"},
		{name: "hostile_tag", prepare: func(f *fixture) { f.Serve("/latest", []byte(`{"tag_name": "../../v1"}`)) }, code: fault.Failure, want: "does not describe a release"},
		{
			name: "another_tag", version: "0.2.0", prepare: func(f *fixture) { f.Serve("/tags/v0.2.0", []byte(`{"tag_name": "v0.1.5"}`)) },
			code: fault.Failure, want: "does not describe a release",
		},
		{
			name: "busy_feed", prepare: func(f *fixture) {
				f.Handle("/latest", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
			},
			code: fault.Failure, want: "status 403 Forbidden",
		},
		{
			name: "wrong_checksum", prepare: func(f *fixture) { f.Serve(file, updatetest.Archive(updatetest.Program("0.2.1"))) },
			code: fault.Failure, want: "the checksum of",
		},
		{
			name: "not_for_this_computer", prepare: func(f *fixture) { f.Release("v0.2.0", "loki-other.tar.gz", updatetest.Program("0.2.0")) },
			code: fault.NotFound, want: "release v0.2.0 has no " + archive,
		},
		{name: "no_checksums", prepare: func(f *fixture) { f.Handle(updatetest.Path("v0.2.0", sumsName), nil) }, code: fault.Failure, want: "cannot read checksums.txt of release v0.2.0: status 404"},
		{
			name: "odd_checksums", prepare: func(f *fixture) {
				f.Serve(updatetest.Path("v0.2.0", sumsName), []byte("abc\n"))
				f.Serve(updatetest.Path("v0.2.0", signatureName), f.Sign([]byte("abc\n"), "loki v0.2.0"))
			},
			code: fault.Failure, want: "a line that is not a checksum",
		},
		{name: "not_signed", prepare: func(f *fixture) { f.Handle(updatetest.Path("v0.2.0", signatureName), nil) }, code: fault.Failure, want: "is not signed"},
		{name: "odd_signature", prepare: func(f *fixture) { f.Serve(updatetest.Path("v0.2.0", signatureName), []byte("x")) }, code: fault.Failure, want: "is not a signature"},
		{
			name: "signature_of_another_text", prepare: func(f *fixture) {
				f.Serve(updatetest.Path("v0.2.0", signatureName), f.Sign([]byte("other"), "loki v0.2.0"))
			},
			code: fault.Failure, want: "the signature of checksums.txt is wrong",
		},
		{
			name: "signature_by_another_key", prepare: func(f *fixture) { f.options.Keys = "RWRDQ/9FhZUGqBqSmCFO2Jy+Yhu3qf4R8cXM7LYjZ8HO+lQWg1SiNMSI" },
			code: fault.Failure, want: "by another key",
		},
		{
			name: "old_release_as_new", prepare: func(f *fixture) { // with its own valid signature
				packed := updatetest.Archive(updatetest.Program("0.1.1"))
				sums := fmt.Appendf(nil, "%x  %s\n", sha256.Sum256(packed), archive)
				f.Serve(file, packed)
				f.Serve(updatetest.Path("v0.2.0", sumsName), sums)
				f.Serve(updatetest.Path("v0.2.0", signatureName), f.Sign(sums, "loki v0.1.1"))
			},
			code: fault.Failure, want: `the signature is not for this release, but for "loki v0.1.1"`,
		},
		{name: "says_another_version", prepare: members(updatetest.Program("0.1.1")), code: fault.Failure, want: `the new program says that it is "loki 0.1.1", not "loki 0.2.0"`},
		{name: "does_not_run", prepare: members(updatetest.Member{Name: "loki", Body: "\x7fELF"}), code: fault.Failure, want: "the new program does not run"},
		{name: "fails", prepare: members(updatetest.Member{Name: "loki", Body: "#!/bin/sh\nexit 3"}), code: fault.Failure, want: "the new program does not run"},
		{
			name: "hangs", prepare: func(f *fixture) {
				f.options.limits = usual
				f.options.limits.start = time.Second
				f.Release("v0.2.0", archive, updatetest.Member{Name: "loki", Body: "#!/bin/sh\nsleep 100"})
			},
			code: fault.Failure, want: "the new program does not run",
		},
		{name: "link", prepare: members(updatetest.Member{Name: "loki", Link: "/bin/sh"}), code: fault.Failure, want: `no file "loki" at its root`},
		{name: "elsewhere_in_archive", prepare: members(updatetest.Member{Name: "../loki", Body: old}, updatetest.Member{Name: "bin/loki", Body: old}), code: fault.Failure, want: `no file "loki"`},
		{
			name: "not_an_archive", prepare: func(f *fixture) {
				f.Serve(file, []byte("hello"))
				f.sums("v0.2.0", []byte("hello"))
			},
			code: fault.Failure, want: "unexpected EOF",
		},
		{
			name: "truncated", prepare: func(f *fixture) {
				f.Handle(file, func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Length", "1000")
					_, _ = w.Write([]byte("a piece"))
				})
			},
			code: fault.Failure, want: "unexpected EOF",
		},
		{
			name: "large_announced", prepare: func(f *fixture) {
				f.options.limits = usual
				f.options.limits.archive = 10
			},
			code: fault.Failure, want: "which is too much",
		},
		{
			name: "endless", prepare: func(f *fixture) {
				f.Handle("/latest", func(w http.ResponseWriter, _ *http.Request) {
					for piece := make([]byte, 1<<20); ; {
						if _, err := w.Write(piece); err != nil {
							return
						}
					}
				})
			},
			code: fault.Failure, want: "more than 4 MiB",
		},
		{
			name: "bomb", prepare: func(f *fixture) {
				f.options.limits = usual
				f.options.limits.program = 1 << 20
				f.Release("v0.2.0", archive, updatetest.Member{Name: "loki", Body: strings.Repeat("\x00", 2<<20)})
			},
			code: fault.Failure, want: "the program has more than 1 MiB",
		},
		{
			name: "silent", prepare: func(f *fixture) {
				f.options.limits = usual
				f.options.limits.silence = 100 * time.Millisecond
				f.Handle(file, func(w http.ResponseWriter, r *http.Request) {
					w.(http.Flusher).Flush()
					<-r.Context().Done()
				})
			},
			code: fault.Failure, want: "no data within 100ms",
		},
		{
			name: "redirected_to_http", tls: true, prepare: func(f *fixture) {
				f.Handle(file, func(w http.ResponseWriter, r *http.Request) {
					http.Redirect(w, r, "http://127.0.0.1:1/"+archive, http.StatusFound)
				})
			},
			code: fault.Failure, want: "http://127.0.0.1:1/" + archive + " is not encrypted",
		},
		{
			name: "asset_at_http", tls: true, prepare: func(f *fixture) {
				f.Serve("/latest", fmt.Appendf(nil, `{"tag_name": "v0.2.0", "assets": [{"name": %q, "browser_download_url": "http://127.0.0.1:1/x"}]}`, archive))
			},
			code: fault.Failure, want: "http://127.0.0.1:1/x is not encrypted",
		},
		{
			name: "redirected_forever", prepare: func(f *fixture) {
				f.Handle("/latest", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/latest", http.StatusFound) })
			},
			code: fault.Failure, want: "redirected too often",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, tt.tls)
			if tt.prepare != nil {
				tt.prepare(f)
			}
			out, err := Run(t.Context(), f.options, tt.version)
			if err == nil || !strings.Contains(err.Error(), tt.want) || fault.CodeOf(err) != tt.code {
				t.Errorf("%+v, error %v (%s), want %q (%s)", out, err, fault.CodeOf(err), tt.want, tt.code)
			}
			if got := f.installed(t); got != old {
				t.Errorf("the program is %q", got)
			}
		})
	}
}

// TestInterrupted: the user's Ctrl-C ends a download at once.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	f := newFixture(t, false)
	ctx, cancel := context.WithCancel(t.Context())
	f.Handle(updatetest.Path("v0.2.0", archive), func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
	})
	if _, err := Run(ctx, f.options, ""); fault.CodeOf(err) != fault.Canceled {
		t.Errorf("error %v (%s)", err, fault.CodeOf(err))
	}
	if got := f.installed(t); got != old {
		t.Errorf("the program is %q", got)
	}
}

// TestReadOnly: a directory that cannot be written is reported before anything is fetched.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t, false)
	dir := filepath.Dir(f.options.Executable)
	switch {
	case os.Getuid() != 0:
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	case runtime.GOOS == "linux": // nobody can write there, whose mode stays as it is
		dir = "/proc"
		f.options.Executable = dir + "/loki"
	default:
		t.Skip("root may write everywhere")
	}
	f.options.Feed = "http://127.0.0.1:1"
	if _, err := Run(t.Context(), f.options, ""); err == nil || !strings.Contains(err.Error(), "cannot write to "+dir) || !strings.Contains(fault.HintOf(err), "sudo loki --update") {
		t.Errorf("error %v", err)
	}
}

// TestTwoAtOnce: of two updates at the same time one is the last, and both are whole.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, false)
	f.options.Warn = func(string) {}
	f.Release("v0.3.0", archive, updatetest.Program("0.3.0"))
	var wg sync.WaitGroup
	for _, version := range []string{"0.2.0", "0.3.0", "0.2.0", "0.3.0"} {
		wg.Go(func() {
			if out, err := Run(t.Context(), f.options, version); err != nil || out.Status != Updated {
				t.Errorf("%s: %+v, %v", version, out, err)
			}
		})
	}
	wg.Wait()
	if got := f.installed(t); got != updatetest.Program("0.2.0").Body && got != updatetest.Program("0.3.0").Body {
		t.Errorf("the program is %q", got)
	}
}

func TestManagedByPackageManager(t *testing.T) {
	t.Parallel()
	answer := func(text string) ask.Asker {
		return ask.Func(func(_ context.Context, q ask.Question) (string, error) {
			if q.Default != "no" || q.Kind != ask.Select {
				return "", fmt.Errorf("the question is %+v", q)
			}
			return text, nil
		})
	}
	for _, tt := range []struct {
		name  string
		force bool
		asker ask.Asker
		want  Status
		err   string
	}{
		{name: "not_asked", err: "this program is not replaced: it belongs to Cargo"},
		{name: "no", asker: answer("no"), want: Canceled},
		{name: "yes", asker: answer("yes"), want: Updated},
		{name: "force", force: true, want: Updated},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, false)
			f.options.Force, f.options.Asker = tt.force, tt.asker
			cargo := filepath.Join(t.TempDir(), ".cargo", "bin", "loki")
			if err := errors.Join(os.MkdirAll(filepath.Dir(cargo), 0o700), os.Rename(f.options.Executable, cargo)); err != nil {
				t.Fatal(err)
			}
			f.options.Executable = cargo
			out, err := Run(t.Context(), f.options, "")
			if tt.err != "" {
				if err == nil || err.Error() != tt.err || fault.HintOf(err) != "cargo install --force loki, or loki --update --force" {
					t.Errorf("error %v, hint %q", err, fault.HintOf(err))
				}
			} else if err != nil || out.Status != tt.want {
				t.Errorf("%+v, %v", out, err)
			}
			if len(f.warnings) != 1 || !strings.HasPrefix(f.warnings[0], f.options.Executable+" was installed by Cargo") {
				t.Errorf("warnings %q", f.warnings)
			}
			if changed := f.installed(t) != old; changed != (tt.want == Updated) {
				t.Errorf("changed: %v", changed)
			}
		})
	}
}

// TestLeftovers: what killed updates have left is removed, but not what another one may need.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, false)
	dir := filepath.Dir(f.options.Executable)
	for name, age := range map[string]time.Duration{workPrefix + "1": 2 * time.Hour, oldPrefix + "1-loki": 0, workPrefix + "2": time.Minute} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		when := time.Now().Add(-age)
		if err := os.Chtimes(filepath.Join(dir, name), when, when); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Run(t.Context(), f.options, ""); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) != 1 || filepath.Base(left[0]) != workPrefix+"2" {
		t.Errorf("left: %v (%v)", left, err)
	}
}

// TestProgress: the download is shown up to its end.
func TestProgress(t *testing.T) {
	t.Parallel()
	f := newFixture(t, false)
	var last, size int64
	f.options.Progress = func(done, all int64) {
		if done < last {
			t.Errorf("%d after %d", done, last)
		}
		last, size = done, all
	}
	if _, err := Run(t.Context(), f.options, ""); err != nil || last == 0 || last != size {
		t.Errorf("%d of %d, %v", last, size, err)
	}
}
