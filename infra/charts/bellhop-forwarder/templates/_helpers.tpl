{{/* The names are those that the API server's webhook configuration calls: they cannot be chosen. */}}
{{- define "forwarder.labels" -}}
app.kubernetes.io/name: bellhop-forwarder
app.kubernetes.io/part-of: bellhop
{{- end }}

{{- define "forwarder.metadata" -}}
name: bellhop-forwarder
namespace: bellhop-system
labels:
  {{- include "forwarder.labels" . | nindent 2 }}
{{- end }}

{{- define "forwarder.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/* A value may be a template, so that another chart can compute it. */}}
{{- define "forwarder.ingestUrl" -}}
{{- tpl .Values.ingestUrl . | trimSuffix "/" }}
{{- end }}

{{/* Ports that pods call, in order; that of a URL without one is 443. */}}
{{- define "forwarder.ports" -}}
{{- $own := include "forwarder.ingestUrl" . | regexFind ":[0-9]+$" | trimPrefix ":" | default "443" }}
{{- $ports := list "443" "4222" "6443" $own }}
{{- range .Values.ports }}{{ $ports = append $ports (toString .) }}{{ end }}
{{- $padded := list }}
{{- range $ports }}{{ $padded = append $padded (printf "%05d" (int .)) }}{{ end }}
{{- range $padded | uniq | sortAlpha }}
- protocol: TCP
  port: {{ trimPrefix "0" . | trimPrefix "0" | trimPrefix "0" | trimPrefix "0" }}
{{- end }}
{{- end }}
