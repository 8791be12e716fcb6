//go:build unix

package server_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// target is where requests are sent.
type target struct {
	name   string
	url    string
	body   string
	header http.Header
}

func post(name, url, body string, header ...string) target {
	t := target{name: name, url: url, body: body, header: http.Header{"Content-Type": {"application/json"}}}
	for i := 0; i < len(header); i += 2 {
		t.header.Set(header[i], header[i+1])
	}
	return t
}

// newClient returns a client that keeps a connection for each of n users.
func newClient(b *testing.B, n int) *http.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: n, DisableCompression: true}
	b.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

func (t target) send(ctx context.Context, c *http.Client) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader([]byte(t.body)))
	if err != nil {
		return nil, err
	}
	r.Header = t.header
	res, err := c.Do(r)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusCreated {
		text, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		return nil, fmt.Errorf("%s: %s: %s", t.name, res.Status, text)
	}
	return res, nil
}

// once sends a request and reads the answer.
func (t target) once(ctx context.Context, c *http.Client) error {
	res, err := t.send(ctx, c)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

var held = regexp.MustCompile(`h([0-9]+)\.`)

// firstToken returns how long the first token of a stream took, without the time that the provider
// held it, and reads the stream to its end.
func (t target) firstToken(ctx context.Context, c *http.Client) (time.Duration, error) {
	begin := time.Now()
	res, err := t.send(ctx, c)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if m := held.FindSubmatch(line); m != nil {
			took := time.Since(begin)
			ns, _ := strconv.ParseInt(string(m[1]), 10, 64)
			_, err = io.Copy(io.Discard, lines)
			return took - time.Duration(ns), err
		}
		if err != nil {
			return 0, fmt.Errorf("%s: a stream without a token: %w", t.name, err)
		}
	}
}

// crowd has users do something until it was done count times, and returns how long that took.
func crowd(b *testing.B, users, count int, do func(n int) error) time.Duration {
	b.Helper()
	var next atomic.Int64
	var failed sync.Once
	var all sync.WaitGroup
	begin := time.Now()
	for range users {
		all.Go(func() {
			for n := int(next.Add(1)) - 1; n < count; n = int(next.Add(1)) - 1 {
				if err := do(n); err != nil {
					failed.Do(func() { b.Error(err) })
					return
				}
			}
		})
	}
	all.Wait()
	if b.Failed() {
		b.FailNow()
	}
	return time.Since(begin)
}

// quantile returns the q-th part of list, which it sorts, in milliseconds.
func quantile(list []time.Duration, q float64) float64 {
	slices.Sort(list)
	return list[int(q*float64(len(list)-1))].Seconds() * 1000
}
