"""Ten real programs with work that takes each a fraction of a second, and what they need of files:
`python3 -I -S` wants PYTHONHASHSEED=0 in its environment."""
import glob
import os
import shutil
import subprocess

SOURCES = {
    "prime.c": "int prime(int n)\n{\n\tfor (int i = 2; i * i <= n; i++)\n\t\tif (n % i == 0)\n"
               "\t\t\treturn 0;\n\treturn n > 1;\n}\n",
    "sort.lua": "local t = {}\nfor i = 1, 3000 do t[i] = i * 7919 % 3001 end\ntable.sort(t)\n"
                "print(table.concat(t, ' '):len())\n",
    "words.rs": "use std::collections::HashMap;\nfn main() {\n    let mut m = HashMap::new();\n"
                "    for i in 0..20000u64 { *m.entry(i * i % 997).or_insert(0) += i; }\n"
                "    println!(\"{}\", m.len());\n}\n",
    "words.go": "package main\nimport (\"fmt\"; \"sort\")\nfunc main() {\n\tm := map[int]int{}\n"
                "\tfor i := 0; i < 20000; i++ { m[i*i%997] += i }\n\tk := []int{}\n"
                "\tfor x := range m { k = append(k, x) }\n\tsort.Ints(k)\n"
                "\tfmt.Println(len(k))\n}\n",
    "words.cc": "#include <iostream>\n#include <string>\n#include <unordered_map>\nint main()\n{\n"
                "\tstd::unordered_map<std::string, int> m;\n\tfor (int i = 0; i < 20000; i++)\n"
                "\t\tm[std::to_string(i * 7 % 997)] += i;\n"
                "\tstd::cout << m.size() << '\\n';\n}\n",
}
SQL = ("create table t(a, b); with recursive c(x) as (select 1 union all select x + 1 from c where "
       "x < 2000) insert into t select x, x * x % 97 from c; select b, sum(a) from t group by b;")
PERL = ("my %h; $h{$_ * $_ % 997} .= $_ for 1 .. 9000; "
        "print length join '', map { $h{$_} } sort keys %h")
PYTHON = "print(sum(len(str(i * i)) for i in range(9000)), len({str(i) for i in range(999)}))"
NODE = "let s = 0; for (let i = 0; i < 1e5; i++) s = (s + i * i) % 9973; console.log(s)"
COMPILERS = {"words.rs": ("Rust", ["rustc", "-O"]), "words.go": ("Go", ["go", "build"]),
             "words.cc": ("C++", ["g++", "-O2"])}


def make(folder, wanted=()):
    """{name: command line} of those that are installed, or of those of them that are wanted. They
    run in FOLDER, to which their files go."""
    os.makedirs(folder, exist_ok=True)
    lines = "".join(f"{i * i} squared\n" for i in range(9000))
    for name, text in {**SOURCES, "text": lines}.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)
    cc1 = sorted(glob.glob("/usr/lib/gcc/x86_64-linux-gnu/*/cc1"))
    programs = {"gzip": ["gzip", "-c", "text"],
                "sqlite3": ["sqlite3", ":memory:", SQL],
                "cc1": [cc1[-1] if cc1 else "cc1", "-quiet", "-nostdinc", "-O2", "prime.c", "-o",
                        "/dev/null"],
                "lua": ["lua5.4", "sort.lua"],
                "perl": ["perl", "-e", PERL],
                "python3": ["/usr/bin/python3", "-I", "-S", "-c", PYTHON],
                "node": ["node", "-e", NODE]}
    for source, (language, compiler) in COMPILERS.items():
        program = "./" + source.replace(".", "-")
        if not shutil.which(compiler[0]) or (wanted and language not in wanted):
            continue
        cache = os.path.join(folder, "cache")
        subprocess.run([*compiler, "-o", program, source], check=True, cwd=folder,
                       stdout=subprocess.DEVNULL, env={**os.environ, "GOCACHE": cache,
                                                       "GO111MODULE": "off"})
        shutil.rmtree(cache, ignore_errors=True)
        programs[language] = [program]
    return {name: command for name, command in programs.items()
            if (not wanted or name in wanted) and
            (command[0].startswith("./") or shutil.which(command[0]))}
