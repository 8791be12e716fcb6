package sqltext

import (
	"slices"
	"strings"
	"testing"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"nothing", " ;; -- x\n/* y */;", nil},
		{"two", "select 1; select 2", []string{"select 1", "select 2"}},
		{"in_a_string", "select 'a;b'';c'; select 2;", []string{"select 'a;b'';c'", "select 2"}},
		{"in_names", "select \"a;\" , `b;`; x", []string{"select \"a;\" , `b;`", "x"}},
		{"in_comments", "select 1 -- a;b\n; /* c;d */ select 2", []string{"select 1 -- a;b", "/* c;d */ select 2"}},
		{"brackets", "select [a;b]; x", []string{"select [a;b]", "x"}},
		{"trigger", "create trigger t after insert on a begin select case when 1 then 2 end; delete from b; end; select 1", []string{"create trigger t after insert on a begin select case when 1 then 2 end; delete from b; end", "select 1"}},
		{"open_string", "select 'a; b", []string{"select 'a; b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, s := range Split(tt.text, SQLite) {
				got = append(got, s.Text)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	const yes, no = true, false
	for _, tt := range []struct {
		text            string
		unknown, sqlite bool
	}{
		{"", yes, yes},
		{"select 1", yes, yes},
		{" -- why\nSELECT * from t where a = 'delete; drop table t'", yes, yes},
		{"select 1; drop table t", no, no},
		{"selectx", no, no},
		{"with a as (select 1) select * from a", yes, yes},
		{"with a as (delete from t returning *) select * from a", no, no},
		{"with a as (select 1) insert into t select * from a", no, no},
		{"select * into t2 from t", no, no},
		{"select replace(a, 'x', 'y') from t", yes, yes},
		{"replace into t values (1)", no, no},
		{"values (1), (2)", yes, yes},
		{"(select 1) union (select 2)", yes, yes},
		{"show tables", yes, yes},
		{"explain delete from t", no, yes},
		{"explain select 1", yes, yes},
		{"explain analyze delete from t", no, yes},
		{"explain analyze delete from t where id in (1, 2)", no, yes},
		{"explain (analyze) update t set a = (select 1)", no, yes},
		{"explain analyze select (1)", yes, yes},
		{"pragma table_info(t)", no, yes},
		{"pragma main.table_info('t')", no, yes},
		{"pragma journal_mode", no, yes},
		{"pragma journal_mode = wal", no, no},
		{"pragma journal_mode(wal)", no, no},
		{"attach 'x.db' as x", no, no},
		{"select nextval('s')", no, yes},
		{"select pg_terminate_backend(1)", no, yes},
		{"select pg_typeof(1)", yes, yes},
		{"select load_extension('x')", no, no},
		{"select 1 -- x\r;delete from t", no, yes},
		{"select 1 -- x\r\n", yes, yes},
		{"select * from ts_stat('delete from t')", no, yes},
		{"select query_to_xml_and_xmlschema('delete from t', true, true, '')", no, yes},
		{"select * from crosstab('delete from t') as x(a int)", no, yes},
		{"select utl_http.request('http://x') from dual", no, yes},
		{"select x.utl_http.request('http://x') from dual", no, yes},
		{"select 1 shutdown", no, yes},
		{"select 1 backup database x to disk = 'y'", no, yes},
		{"select t.a from t", yes, yes},
		{"pragma wal_checkpoint", no, no},
		{"select my_purge()", no, yes},
		{"select audit.lower('x')", no, yes},
		{"select [xp_cmdshell]('dir')", no, no},
		{"select /* x */ purge /* y */ (1)", no, yes},
		{"select count(*), sum(a) over (partition by b), coalesce(c, 'x')::varchar(10) from t where d in (1, 2) group by b having count(*) > (select 1)", yes, yes},
		{"with recursive n(i) as (select 1 union all select i + 1 from n where i < 9) select * from n", yes, yes},
		{"select * from json_each(x) as e(k, v)", yes, yes},
		{"with n as materialized (select now()) select date_trunc('day', t) from n join m using (id)", yes, yes},
		{"pragma main.optimize", no, no},
		{`select "load_extension"('x')`, no, no},
		{`select 'a\'; drop table t; --'`, no, no},
		{`select 'C:\x'`, no, yes},
		{"select 1 --1; drop table t\n", no, yes},
		{"select 1 -- 1; drop table t\n", yes, yes},
		{"select 1 # 2", no, yes},
		{"select $$a;b$$", no, no},
		{"select $1", yes, yes},
		{"select /*! sleep(1) */ 1", no, yes},
		{"select 1 /* /* */ ; drop table t */", no, no},
		{"\\! rm -rf x", no, no},
		{"select 1 \\g |sh", no, yes},
		{"select 'open", no, yes},
		{"update t set a = 1", no, no},
		{"select \"update\" from t", yes, yes},
		{"select [a'] ; drop table t; --']", no, no},
		{"select a[1]", yes, yes},
		{"select q'[']' ; drop table t; --'", no, yes},
		{"select ` ; drop table t; `", no, yes},
		{"begin; select 1; commit", no, no},
	} {
		if got := ReadOnly(tt.text, Unknown); got != tt.unknown {
			t.Errorf("%q: got %v", tt.text, got)
		}
		if got := ReadOnly(tt.text, SQLite); got != tt.sqlite {
			t.Errorf("%q for SQLite: got %v", tt.text, got)
		}
	}
}

// No statement is lost or made up, and what reads only stays so among other such.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{
		"select 1; select 2", "select 'a;''b'", "create trigger t begin select 1; end; x", "/* ; */ -- ;\n;", "select [a", "$$;$$", "\\! x", "`", "select 1 /*",
		"with a as (select 1) select 2", "é;ü", "\x00;\xff",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range []Dialect{Unknown, SQLite} {
			rest := text
			for _, s := range Split(text, d) {
				i := strings.Index(rest, s.Text)
				if s.Text == "" || i < 0 {
					t.Fatalf("%q: statement %q is not in %q", text, s.Text, rest)
				}
				rest = rest[i+len(s.Text):]
			}
			if ReadOnly(text, d) && ReadOnly(text+"\n; drop table t", d) && !strings.Contains(text, "/*") && !strings.ContainsAny(text, "'\"`[") {
				t.Fatalf("%q hides a statement", text)
			}
		}
		if ReadOnly(text, Unknown) && ReadOnly(text+"\n; drop table t", Unknown) && !strings.Contains(text, "/*") {
			t.Fatalf("%q hides a statement", text)
		}
	})
}
