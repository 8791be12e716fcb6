package permission_test
import ("testing";"os";"strings";"path/filepath";"loki/internal/permission")
func TestZZ(t *testing.T){
 root:=project(t)
 os.Symlink("/etc/passwd", filepath.Join(root,"sub","inner"))
 for _,shell:=range []string{"bash","sh"}{
 j:=judge(t,permission.Options{Root:root,Home:"/home/user",Shell:shell})
 data,_:=os.ReadFile("/tmp/cands.txt")
 for line:=range strings.Lines(string(data)){ text:=strings.ReplaceAll(unescape(strings.TrimSuffix(line,"\n")),"@ROOT@",root)
  v:=j.Judge(shellCall(text)); if v.Action==permission.Allow {t.Logf("%s ALLOWED %q",shell,text)}}}
 type rc struct{rules []permission.Rule; text string}
 A:=func(p ...string)[]permission.Rule{return []permission.Rule{{Tool:"execute_command",Action:permission.Allow,Commands:p}}}
 D:=[]permission.Rule{{Tool:"execute_command",Action:permission.Allow},{Tool:"execute_command",Action:permission.Deny,Commands:[]string{"rm *"}}}
 for _,c:=range []rc{
  {D,"bash -c -- 'rm -rf x'"},{D,"env -S 'rm -rf x'"},{D,"sudo --user=root rm -rf x"},{D,`sh -c "$(echo rm -rf x)"`},{D,"eval $x"},{D,"pkexec rm x"},{D,"runuser -u x -- rm x"},{D,"nice --adjustment=3 rm x"},{D,"timeout --kill=3 5 rm x"},{D,"xargs --max-lines=1 rm x"},{D,"bash --posix -c 'rm x'"},{D,"bash +x -c 'rm x'"},{D,"bash -o errexit -c 'rm x'"},{D,"sh -xec 'rm x'"},{D,"setpriv --reuid=0 rm x"},{D,"systemd-run rm x"},{D,"linux64 rm x"},{D,"su root -c 'rm x'"},{D,"su -c rm"},{D,"bash <<< 'rm x'"},{D,"echo 'rm x' | sh"},{D,"sh <<EOF\nrm x\nEOF"},{D,"fd -HX rm"},{D,"fd --exec=rm"},{D,"parallel -j4 rm ::: x"},{D,"parallel rm ::: x"},{D,"watch -n 1 rm x"},{D,"watch --interval=1 rm x"},{D,"script -qc 'rm x' /dev/null"},{D,"ssh host rm x"},{D,"docker run x rm x"},
  {A("git *"),"git clone -u 'touch x' y"},{A("git *"),"git grep -Otouch x"},{A("git *"),"git --no-pager config core.pager x"},{A("git *"),"git --no-pager submodule foreach 'touch x'"},{A("git *"),"git --no-pager rebase -x 'touch x' HEAD~1"},{A("git *"),"git -P bisect run touch x"},{A("git *"),"git remote-ext a 'touch x'"},{A("git *"),"git clone -c core.fsmonitor='touch x' y"},{A("git *"),"git clone --config core.fsmonitor=x y"},{A("git *"),"git for-each-repo --config=x -- -c alias.x='!touch' x"},{A("git *"),"git difftool -x 'touch x'"},{A("git *"),"git -p difftool -x 'touch x'"},{A("git *"),"git send-email --sendmail-cmd=x"},
  {A("go build *"),"go build -ldflags='-linkmode=external -extld=/tmp/e'"},{A("make *"),"make --file=evil"},{A("make *"),"make -sf evil"},{A("make *"),"make --makefile=evil"},
  {A("tar *"),"tar cfI x 'touch x' y"},{A("tar *"),"tar -cfI x 'touch x' y"},{A("tar *"),"tar --rmt-command=x cf h:y z"},{A("rsync *"),"rsync -ave 'sh -c x' a b:"},{A("ssh *"),"ssh -vo ProxyCommand=x h"},{A("sed *"),"sed -i '1e touch x' a.txt"},{A("sed *"),"sed -f x a.txt"},{A("sed *"),"sed --debug '1e touch x' a.txt"},{A("gcc *"),"gcc -wrapper x,y a.c"},{A("split *"),"split --filter='touch x' a"},{A("npm *"),"npm --script-shell=x run y"},{A("fd *"),"fd -HX touch"},{A("fd *"),"fd --exec=touch"},{A("curl *"),"curl -sK x"},{A("hg *"),"hg --config alias.x='!touch' x"},{A("wget *"),"wget --use-askpass=x y"},{A("xargs *"),"xargs -rI{} sh -c '{}'"},
  {A("grep *"),"grep x /etc/passwd"},
  {[]permission.Rule{{Tool:"execute_command",Action:permission.Deny,Paths:[]string{"**/a.txt"}}},"cat a.txt"},
 }{ j:=judge(t,permission.Options{Root:root,Home:"/home/user",Shell:"bash",Rules:permission.Rules{List:c.rules}})
  if v:=j.Judge(shellCall(c.text)); v.Action==permission.Allow {t.Logf("RULE %v ALLOWED %q",c.rules[len(c.rules)-1].Commands,c.text)}}
}
