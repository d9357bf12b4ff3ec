// The oracle renders templates with Go's own text/template and sprig.
//
// It reads one JSON object a line and answers with one a line. Whole numbers become int64, as in
// Kubernetes' unstructured objects; an object with the key "@reference" becomes a struct.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"

	v1 "oracle/v1"
)

type question struct {
	Template   string      `json:"template"`
	Data       interface{} `json:"data"`
	Functions  string      `json:"functions"`
	MissingKey string      `json:"missingkey"`
	Repeat     int         `json:"repeat"`
}

type answer struct {
	Output string `json:"output"`
	Error  string `json:"error,omitempty"`
	// Nanoseconds is the mean time of one render, where it was to be repeated.
	Nanoseconds int64 `json:"nanoseconds,omitempty"`
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for lines.Scan() {
		var q question
		decoder := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		decoder.UseNumber()
		if err := decoder.Decode(&q); err != nil {
			panic(err)
		}
		if err := encoder.Encode(render(q)); err != nil {
			panic(err)
		}
		out.Flush()
	}
}

func render(q question) (a answer) {
	t := template.New("template").Option("missingkey=" + q.MissingKey)
	if q.Functions != "go" {
		t = t.Funcs(sprig.TxtFuncMap())
	}
	data := plain(q.Data)
	if q.Functions == "event" || q.Functions == "deploy" {
		t = t.Funcs(helm)
	}
	if q.Functions == "deploy" {
		t = t.Funcs(template.FuncMap{"getResource": func(id string) map[string]interface{} {
			found, _ := data.(map[string]interface{})["resources"].(map[string]interface{})[id].(map[string]interface{})
			return found
		}})
	}
	parsed, err := t.Parse(q.Template)
	if err != nil {
		return answer{Error: err.Error()}
	}
	var b strings.Builder
	if err := parsed.Execute(&b, data); err != nil {
		return answer{Output: b.String(), Error: err.Error()}
	}
	if q.Repeat == 0 {
		return answer{Output: b.String()}
	}
	start := time.Now()
	for i := 0; i < q.Repeat; i++ {
		b.Reset()
		_ = parsed.Execute(&b, data)
	}
	return answer{Output: b.String(), Nanoseconds: time.Since(start).Nanoseconds() / int64(q.Repeat)}
}

// plain turns decoded JSON into what Kubernetes decodes.
func plain(v interface{}) interface{} {
	switch v := v.(type) {
	case json.Number:
		if !strings.ContainsAny(v.String(), ".eE") {
			if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
				return n
			}
		}
		f, _ := v.Float64()
		return f
	case []interface{}:
		for i := range v {
			v[i] = plain(v[i])
		}
		return v
	case map[string]interface{}:
		if fields, ok := v["@reference"].(map[string]interface{}); ok {
			text := func(key string) string { s, _ := fields[key].(string); return s }
			return v1.ObjectReference{
				Kind: text("Kind"), Namespace: text("Namespace"), Name: text("Name"), APIVersion: text("APIVersion"),
			}
		}
		for k := range v {
			v[k] = plain(v[k])
		}
		return v
	}
	return v
}

func decode(text []byte, into interface{}) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(into)
}

var helm = template.FuncMap{
	"toYaml": func(v interface{}) string {
		text, err := yaml.Marshal(v)
		if err != nil {
			return ""
		}
		return strings.TrimSuffix(string(text), "\n")
	},
	"fromYaml": func(text string) map[string]interface{} {
		m := map[string]interface{}{}
		j, err := yaml.YAMLToJSON([]byte(text))
		if err == nil {
			if err = decode(j, &m); err != nil {
				err = yaml.Unmarshal([]byte(text), &map[string]interface{}{})
			}
		} else {
			err = yaml.Unmarshal([]byte(text), &m)
		}
		if err != nil {
			return map[string]interface{}{"Error": err.Error()}
		}
		if m == nil {
			m = map[string]interface{}{}
		}
		return plain(m).(map[string]interface{})
	},
	"fromYamlArray": func(text string) []interface{} {
		a := []interface{}{}
		j, err := yaml.YAMLToJSON([]byte(text))
		if err == nil {
			if err = decode(j, &a); err != nil {
				err = yaml.Unmarshal([]byte(text), &[]interface{}{})
			}
		} else {
			err = yaml.Unmarshal([]byte(text), &a)
		}
		if err != nil {
			return []interface{}{err.Error()}
		}
		if a == nil {
			a = []interface{}{}
		}
		return plain(a).([]interface{})
	},
	"toJson": func(v interface{}) string {
		text, err := json.Marshal(v)
		if err != nil {
			return ""
		}
		return string(text)
	},
	"fromJson": func(text string) map[string]interface{} {
		m := map[string]interface{}{}
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			return map[string]interface{}{"Error": err.Error()}
		}
		m = map[string]interface{}{}
		_ = decode([]byte(text), &m)
		if m == nil {
			m = map[string]interface{}{}
		}
		return plain(m).(map[string]interface{})
	},
	"fromJsonArray": func(text string) []interface{} {
		a := []interface{}{}
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			return []interface{}{err.Error()}
		}
		a = []interface{}{}
		_ = decode([]byte(text), &a)
		if a == nil {
			a = []interface{}{}
		}
		return plain(a).([]interface{})
	},
	"toToml": func(v interface{}) string {
		var b bytes.Buffer
		if err := toml.NewEncoder(&b).Encode(v); err != nil {
			return err.Error()
		}
		return b.String()
	},
	"fromToml": func(text string) map[string]interface{} {
		m := map[string]interface{}{}
		if err := toml.Unmarshal([]byte(text), &m); err != nil {
			return map[string]interface{}{"Error": err.Error()}
		}
		return m
	},
}
