package mcp

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// reap starts the goroutine that checks idle connections. p.mu is held. The goroutine
// ends when none is left.
func (p *Pool) reap() {
	if p.reaping {
		return
	}
	p.reaping = true
	ctx, stop := context.WithCancel(context.Background()) // Shutdown ends it
	p.reapStop = stop
	p.work.Go(func() {
		defer stop()
		ticker := time.NewTicker(p.opts.Pool.CleanupInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			p.cycle(ctx)
			if p.nothingIdle() {
				return
			}
		}
	})
}

// nothingIdle reports whether the reaper can end, and if so marks it as ended.
func (p *Pool) nothingIdle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle()) > 0 {
		return false
	}
	p.reaping = false
	return true
}

// idle returns the idle connections, the longest idle first. p.mu is held.
func (p *Pool) idle() []*entry {
	list := slices.DeleteFunc(slices.Collect(maps.Values(p.entries)), func(e *entry) bool { return e.users > 0 })
	slices.SortFunc(list, func(a, b *entry) int {
		return cmp.Or(a.idleSince.Compare(b.idleSince), cmp.Compare(a.server.ID, b.server.ID))
	})
	return list
}

// cycle closes connections that are idle for too long, exceed the limit, or failed their
// check. An error does not end the reaper.
func (p *Pool) cycle(ctx context.Context) {
	defer func() {
		if v := recover(); v != nil {
			p.opts.Log.Error("checking idle MCP servers failed", "error", fmt.Sprint(v))
		}
	}()
	p.evict()
	if p.opts.Pool.Health != nil {
		p.checkAll(ctx, *p.opts.Pool.Health)
	}
}

func (p *Pool) evict() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for _, e := range p.idle() {
		switch {
		case !e.link.alive():
			p.drop(e, 0)
		case now.Sub(e.idleSince) >= e.timeout:
			p.metrics.IdleEvictions++
			p.drop(e, p.opts.StopGrace)
		}
	}
	if p.opts.Pool.MaxIdle < 0 {
		return
	}
	left := p.idle()
	for _, e := range left[:max(len(left)-p.opts.Pool.MaxIdle, 0)] {
		p.metrics.CapEvictions++
		p.drop(e, p.opts.StopGrace)
	}
}

// checkAll checks the idle connections whose last check is long ago.
func (p *Pool) checkAll(ctx context.Context, h HealthCheck) {
	p.mu.Lock()
	var due []*entry
	for _, e := range p.idle() {
		if e.checked.IsZero() || time.Since(e.checked) >= h.Interval {
			due = append(due, e)
		}
	}
	p.mu.Unlock()
	for _, e := range due {
		if ctx.Err() != nil {
			return
		}
		limit, cancel := context.WithTimeout(ctx, h.Timeout)
		err := e.link.check(limit)
		cancel()
		if ctx.Err() != nil {
			return
		}
		p.judge(e, h, err)
	}
}

// judge acts on the outcome of a check.
func (p *Pool) judge(e *entry, h HealthCheck, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.checked = time.Now()
	if err == nil {
		p.metrics.HealthOK++
		return
	}
	p.metrics.HealthFailed++
	if h.OnFailure != Evict {
		p.opts.Log.Warn("idle MCP server failed its health check", "mcp_server", e.server.ID, "error", err, "evicted", h.OnFailure != LogOnly)
	}
	// A caller that acquired it meanwhile gets the error.
	if h.OnFailure != LogOnly && e.users == 0 && p.entries[e.key] == e {
		p.drop(e, 0)
	}
}

// check asks for the list of tools, a request that every server has to support.
func (c *conn) check(ctx context.Context) error {
	_, err := c.session.ListTools(ctx, nil)
	if isRPC(err) {
		return nil // it works, and has no tools
	}
	return c.exchangeError(ctx, ctx, err)
}

func (c *conn) describe() Status {
	s := Status{}
	if init := c.session.InitializeResult(); init != nil {
		s.Protocol = init.ProtocolVersion
		if init.ServerInfo != nil {
			s.Version = init.ServerInfo.Version
		}
	}
	if c.program != nil {
		s.PID = c.program.service.PID()
	}
	return s
}
