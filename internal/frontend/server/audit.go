package server

import (
	"context"
	"os"
	"strings"
	"time"

	"loki/internal/frontend/server/rest"
	"loki/internal/llm/event"
	"loki/internal/service/auth"
	"loki/internal/service/auth/audit"
	"loki/internal/setup/config"
)

// sinkPatience is how long a change of the configuration waits for an audit sink that is writing.
const sinkPatience = 2 * time.Second

// sinkOf returns where the audit record goes.
func sinkOf(c *config.APIAudit) audit.Sink {
	switch c.Sink {
	case config.AuditFile:
		return audit.File(c.Path, int64(c.MaxBytes), c.Keep)
	case config.AuditSyslog:
		return audit.Syslog()
	}
	return audit.Stderr(os.Stderr)
}

// note adds a line about a request that was answered, if the audit record has requests of its kind.
func (s *Server) note(ctx context.Context, method string, o rest.Outcome) {
	log := s.audit.Load()
	if log == nil {
		return
	}
	e := entryOf(ctx)
	e.Action, e.Target, e.Result, e.Reason = o.Action, target(o), audit.Success, o.Reason
	switch {
	case o.Refusal == rest.RefusedKey:
		e.Action = audit.AuthFailure
	case o.Refusal == rest.RefusedLimit:
		e.Action = audit.LimitReached
	}
	if e.Action == "" {
		return
	}
	e.Details = map[string]any{"method": method, "route": o.Route}
	for name, value := range map[string]string{"session_id": o.Session, "run_id": o.Run, "agent": o.Agent, "rag": o.Base} {
		if value != "" {
			e.Details[name] = value
		}
	}
	if o.Replayed {
		e.Details["replayed"] = true
	}
	if o.Err != nil {
		e.Result = audit.Denied
		if o.Err.Status >= 499 { // canceled by the client, or failed here
			e.Result = audit.Failure
		}
		if e.Reason == "" {
			e.Reason = o.Err.Code
		}
		e.Details["status"] = o.Err.Status
	}
	log.Add(e)
}

// entryOf returns a line about work that was begun with ctx. It says who asked for it or, of work that no subject asked for, such as a
// run that resumes by itself after a restart, whose it is.
func entryOf(ctx context.Context) audit.Entry {
	who := rest.Subject(ctx)
	e := audit.Entry{RequestID: rest.RequestID(ctx), Subject: who.Subject, KeyID: who.KeyID}
	if e.RequestID == "" {
		e.Subject = ""
	}
	if owner := auth.OwnerOf(ctx); e.Subject == "" && owner != nil {
		e.Subject, e.KeyID = owner.Subject, owner.KeyID
	}
	return e
}

// target returns what an action is about.
func target(o rest.Outcome) string {
	switch {
	case o.Action == audit.MCPReload:
		return "mcp"
	case o.Base != "":
		return "rag:" + o.Base
	case o.Action == audit.ScheduleChange && o.Schedule != "":
		return "schedule:" + o.Schedule
	case o.Action == audit.AgentActivate && o.Agent != "":
		return "agent:" + o.Agent
	case o.Run != "":
		return "run:" + o.Run
	case o.Session != "":
		return "session:" + o.Session
	case o.Agent != "":
		return "agent:" + o.Agent
	}
	return ""
}

// auditEmitter returns an emitter that adds a line for each tool that was executed.
func (s *Server) auditEmitter() event.Emitter {
	return event.Func(func(ctx context.Context, ev event.Event) error {
		b, ok := ev.Body.(event.ToolResult)
		log := s.audit.Load()
		if !ok || log == nil {
			return nil
		}
		e := entryOf(ctx)
		e.Action, e.Target, e.Result = audit.ToolExecute, "tool:"+b.Name, audit.Success
		if b.Failed {
			e.Result, e.Reason = audit.Failure, "tool_error"
		}
		e.Details = make(map[string]any)
		for name, value := range map[string]string{"run_id": ev.Run, "agent": ev.Agent, "node": ev.Node, "call_id": b.ID} {
			if value != "" {
				e.Details[name] = value
			}
		}
		log.Add(e)
		return nil
	})
}

// noteReload adds a line about a configuration that was read again.
func (s *Server) noteReload(fixed []string, err error) {
	log := s.audit.Load()
	if log == nil {
		return
	}
	e := audit.Entry{Action: audit.ConfigReload, Target: "config", Result: audit.Success}
	if len(fixed) > 0 {
		e.Details = map[string]any{"needs_restart": fixed}
	}
	if err != nil {
		e.Result, e.Reason = audit.Failure, strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	log.Add(e)
}

// useAudit has the audit record go where the configuration says now.
func (s *Server) useAudit(ctx context.Context, c *config.APIAudit) error {
	log := s.audit.Load()
	switch {
	case c == nil && log == nil:
		return nil
	case c == nil:
		s.audit.Store(nil)
		return log.Close(ctx)
	case log == nil:
		s.audit.Store(audit.Start(audit.Options{Sink: sinkOf(c), Hide: s.o.App.Hide, Log: s.o.Log}))
		return nil
	}
	return log.Replace(ctx, sinkOf(c))
}

// observers returns what gets all events of the server.
func (s *Server) observers() event.Emitter {
	return event.Tee(s.o.Observer, s.meter.events, s.auditEmitter())
}
