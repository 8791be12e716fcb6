package builtin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"loki/internal/base/process"
	"loki/internal/base/process/tempdir"
	"loki/internal/base/text"
	"loki/internal/tool"
	"loki/internal/tool/builtin/sqlite"
	"loki/internal/tool/builtin/sqltext"
	"loki/internal/tool/permission"
)

func (b *base) executeSQLCode() tool.Tool {
	params := []param{{name: "code", kind: "string", description: "The SQL to run, one or more statements."}}
	return &sqlTool{b, guardedTool{
		native: native{
			name:        "execute_sql_code",
			description: "Run SQL on the user's database and return the rows of each statement.",
			params:      params,
			hints:       tool.Hints{Destructive: true, Timeout: b.CommandTimeout},
			run: run(params, func(ctx context.Context, args codeArgs, call tool.Call) (tool.Result, error) {
				dsn, err := b.need("USQL_DSN")
				if err != nil {
					return tool.Result{}, err
				}
				if db, ok := sqlite.Parse(dsn[0]); ok {
					return b.sqliteQuery(ctx, db, args.Code, call.Hidden)
				}
				return b.usql(ctx, call, dsn[0], args.Code)
			}),
		},
		consent: consent(params, func(args codeArgs) (string, error) {
			if sqltext.ReadOnly(args.Code, dialect(b.Getenv("USQL_DSN"))) {
				return "", nil
			}
			return runQuestion("this SQL", "", args.Code), nil
		}),
	}}
}

// sqlTool is a tool that opens the user's database, and files that the SQL names.
type sqlTool struct {
	b *base
	guardedTool
}

var _ tool.Opener = (*sqlTool)(nil)

// Opens implements [tool.Opener].
func (t *sqlTool) Opens(call tool.Call) (files []string, use permission.Access) {
	args, err := tool.Decode[codeArgs](call)
	dsn := t.b.Getenv("USQL_DSN")
	if err != nil || dsn == "" {
		return nil, ""
	}
	if sqltext.ReadOnly(args.Code, dialect(dsn)) {
		use = permission.Reading
	}
	files = quotedTexts(args.Code)
	if db, ok := sqlite.Parse(dsn); ok && !db.Memory() {
		files = append(files, db.File)
	} else if _, file, found := strings.Cut(dsn, ":"); found && !ok { // of DuckDB and the like
		file, _, _ = strings.Cut(strings.TrimPrefix(file, "//"), "?")
		files = append(files, file)
	}
	for i, f := range files {
		files[i] = strings.TrimPrefix(f, "file:")
	}
	return files, use
}

func dialect(dsn string) sqltext.Dialect {
	if _, ok := sqlite.Parse(dsn); ok {
		return sqltext.SQLite
	}
	return sqltext.Unknown
}

// sqliteQuery runs SQL on a file of SQLite, without any program. A hidden file is used only if the SQL names it, since then it
// was asked about.
func (b *base) sqliteQuery(ctx context.Context, db sqlite.Database, code string, hidden func(path string) bool) (tool.Result, error) {
	if !db.Memory() {
		p, err := b.root.Resolve(db.File)
		if err != nil {
			return tool.Result{}, err
		}
		db.File = p.Abs
	}
	db.ReadOnly = sqltext.ReadOnly(code, sqltext.SQLite)
	if db.ReadOnly && !db.Memory() {
		if _, err := os.Stat(db.File); err != nil {
			return tool.Result{}, fmt.Errorf("there is no database at %s", db.File)
		}
	}
	if hidden != nil {
		for _, one := range sqltext.Split(code, sqltext.SQLite) {
			if opening().MatchString(one.Text) && !plainOpening().MatchString(one.Text) {
				return tool.Result{}, errors.New("ATTACH and VACUUM INTO need a file name in plain quotes, since a rule keeps files from models")
			}
		}
		named := map[string]bool{}
		for _, text := range quotedTexts(code) {
			if p, err := b.root.Resolve(strings.TrimPrefix(text, "file:")); err == nil {
				named[p.Real] = true
			}
		}
		db.Closed = func(file string) bool { return hidden(file) && !named[file] }
	}
	out, err := db.Run(ctx, sqltext.Split(code, sqltext.SQLite))
	return tool.Result{Output: out}, err
}

var (
	// opening finds a statement of SQLite that opens a file by its name, and plainOpening one whose name is a text in quotes.
	opening      = text.Regexp(`(?is)^(?:\s|--[^\n]*\n|/\*.*?\*/)*(?:attach|vacuum)\b`)
	plainOpening = text.Regexp(`(?is)^\s*(?:attach(?:\s+database)?\s+(?:'[^']+'|"[^"]+")\s+as\s+\S+|vacuum(?:\s+\w+)??(?:\s+into\s+(?:'[^']+'|"[^"]+"))?)\s*;?\s*$`)
)

// usql runs SQL with the usql program, for databases of all other kinds.
func (b *base) usql(ctx context.Context, call tool.Call, dsn, code string) (tool.Result, error) {
	path, err := b.look("usql")
	if err != nil {
		return tool.Result{}, errors.New("this database needs the program usql, which is not installed on the user's computer (see https://github.com/xo/usql). SQLite databases (USQL_DSN=sqlite:FILE) need no program")
	}
	if path, err = filepath.Abs(path); err != nil {
		return tool.Result{}, err
	}
	bare, file, err := passwordFile(dsn)
	if err != nil {
		return tool.Result{}, err
	}
	set := map[string]string{}
	if file != "" {
		defer os.RemoveAll(filepath.Dir(file))
		set["USQLPASS"] = file
	}
	// No start-up file, no question for a password.
	r, err := b.program(ctx, call, confiner{}, process.Command{Path: path, Args: []string{"-X", "-w", "-q", "-c", code, bare}}, set)
	r.Output, r.Stderr = hide(hide(r.Output, dsn), bare), hide(hide(r.Stderr, dsn), bare)
	return r, err
}

// passwordFile returns a database address without its password, and the path of a file from which usql takes that:
// the arguments of a program are readable for every user of the computer. The path is empty if the
// address has no password before its host.
func passwordFile(dsn string) (bare, file string, err error) {
	u, err := url.Parse(dsn)
	if err != nil || u.User == nil {
		return dsn, "", nil
	}
	password, ok := u.User.Password()
	if !ok {
		return dsn, "", nil
	}
	if strings.ContainsAny(password, "\r\n") {
		return "", "", errors.New("the password in USQL_DSN has a line end, which the file of passwords of usql cannot hold")
	}
	field := func(s string) string {
		return cmp.Or(strings.NewReplacer(`\`, `\\`, ":", `\:`).Replace(s), "*")
	}
	dir, err := tempdir.Make("", "usql") // readable for the user only
	if err != nil {
		return "", "", err
	}
	file = filepath.Join(dir, "passwords")
	if err := os.WriteFile(file, fmt.Appendf(nil, "*:*:*:*:%s:%s\n", field(u.User.Username()), field(password)), 0o600); err != nil {
		os.RemoveAll(dir)
		return "", "", err
	}
	u.User = url.User(u.User.Username())
	return u.String(), file, nil
}

// hide removes a database address, which can hold a password, from the output.
func hide(text, dsn string) string { return strings.ReplaceAll(text, dsn, "USQL_DSN") }
