-- JSON both ways. Results leave the box as JSON, and scripts have it as module "json".

local box = ...

local error, type, next, tonumber, pairs = error, type, next, tonumber, pairs
local format, find, sub, gsub, char, byte = string.format, string.find, string.sub, string.gsub, string.char, string.byte
local concat, sort, floor = table.concat, table.sort, math.floor

-- Written as ASCII: a byte above 127 becomes the code point of the same number, and the
-- host puts the bytes back together, valid UTF-8 or not.
local escapes = {}
for code = 0, 255 do
  escapes[char(code)] = format("\\u%04x", code)
end
escapes['"'], escapes["\\"], escapes["\n"] = '\\"', "\\\\", "\\n"
local ESCAPED = '[%c"\\\127-\255]'

local function quote_ascii(s)
  if find(s, ESCAPED) then
    s = gsub(s, ESCAPED, escapes)
  end
  return '"' .. s .. '"'
end

local function quote_bytes(s)
  return '"' .. gsub(s, '[%c"\\]', escapes) .. '"'
end

local function place(w)
  local names = {}
  for depth = 1, w.depth do
    names[depth] = type(w.path[depth]) == "number" and "[" .. w.path[depth] .. "]" or w.path[depth]
  end
  return #names > 0 and " at '" .. gsub(concat(names, "."), "%.%[", "[") .. "'" or ""
end

local function number_text(w, n)
  if n ~= n or n == 1 / 0 or n == -1 / 0 then
    w.fail("a number that is not finite" .. place(w) .. " cannot be JSON")
  end
  if n == floor(n) and n > -2 ^ 63 and n < 2 ^ 63 then
    return format("%.0f", n)
  end
  return format("%.17g", n)
end

local function survey(w, t)
  local count, last, words, numbers = 0, 0, false, false
  local whole = true
  for key in next, t do
    count = count + 1
    if type(key) == "string" then
      words = true
    elseif type(key) == "number" then
      numbers = true
      whole = whole and key >= 1 and key == floor(key)
      last = key > last and key or last
    else
      w.fail("a key of type " .. type(key) .. place(w) .. " cannot be JSON")
    end
  end
  if words and numbers then
    w.fail("a table with both names and numbers as keys" .. place(w) .. " cannot be JSON")
  end
  if count == 0 then
    return box.marks[t] and "list" or w.empty, 0
  end
  if numbers and whole and last == count then
    return "list", count
  end
  return (numbers and whole and box.marks[t]) and "holes" or "map", count
end

local write

local function write_list(w, t, count)
  local out = w.out
  out[#out + 1] = "["
  for index = 1, count do
    if index > 1 then
      out[#out + 1] = ","
    end
    w.path[w.depth] = index
    write(w, t[index])
  end
  out[#out + 1] = "]"
end

local function without_holes(t)
  local keys, kept = {}, {}
  for key in next, t do
    keys[#keys + 1] = key
  end
  sort(keys)
  for index = 1, #keys do
    kept[index] = t[keys[index]]
  end
  return kept
end

local function write_map(w, t)
  local out, first = w.out, true
  out[#out + 1] = "{"
  for key, value in next, t do
    w.path[w.depth] = key
    out[#out + 1] = (first and "" or ",") .. w.quote(type(key) == "number" and number_text(w, key) or key) .. ":"
    first = false
    write(w, value)
  end
  out[#out + 1] = "}"
end

local function write_table(w, t)
  if w.active[t] then
    w.fail("a table that contains itself" .. place(w) .. " cannot be JSON")
  end
  if w.depth >= box.depth then
    w.fail("tables nested deeper than " .. box.depth .. " cannot be JSON")
  end
  local shape, count = survey(w, t)
  w.active[t] = true
  w.depth = w.depth + 1
  if shape == "list" then
    write_list(w, t, count)
  elseif shape == "holes" then
    write_list(w, without_holes(t), count)
  else
    write_map(w, t)
  end
  w.depth = w.depth - 1
  w.active[t] = nil
end

function write(w, value)
  local kind = type(value)
  local out = w.out
  if kind == "table" then
    write_table(w, value)
  elseif kind == "string" then
    out[#out + 1] = w.quote(value)
  elseif kind == "number" then
    out[#out + 1] = number_text(w, value)
  elseif kind == "boolean" then
    out[#out + 1] = value and "true" or "false"
  elseif kind == "nil" then
    out[#out + 1] = "null"
  else
    w.fail("a " .. kind .. place(w) .. " cannot be JSON")
  end
end

local function encode(value, empty, quote, fail)
  local w = { out = {}, path = {}, depth = 0, active = {}, empty = empty, quote = quote, fail = fail }
  write(w, value)
  return concat(w.out)
end

local function refuse(why)
  error({ unfit = why }, 0)
end

-- What nearly every script returns, written in less time; nil where it is anything else.
local function write_verdict(value)
  local matching, message
  for key, item in next, value do
    if key == "matching" and type(item) == "boolean" then
      matching = item and "true" or "false"
    elseif key == "message" and type(item) == "string" then
      message = item
    else
      return nil
    end
  end
  if not matching then
    return nil
  end
  return '{"matching":' .. matching .. (message and ',"message":' .. quote_ascii(message) or "") .. "}"
end

-- For the host: ASCII, an empty table is an object unless it came in as a list.
function box.encode(value)
  local short = type(value) == "table" and write_verdict(value)
  return short or encode(value, "map", quote_ascii, refuse)
end

local parse

local function bad(r, what)
  error({ unfit = what .. " at position " .. r.at }, 0)
end

local function skip(r)
  local _, last = find(r.text, "^[ \t\r\n]*", r.at)
  r.at = last + 1
end

local SHORT = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", ['"'] = '"', ["\\"] = "\\", ["/"] = "/" }

local function utf8_of(code)
  if code < 0x80 then
    return char(code)
  elseif code < 0x800 then
    return char(0xC0 + floor(code / 64), 0x80 + code % 64)
  elseif code < 0x10000 then
    return char(0xE0 + floor(code / 4096), 0x80 + floor(code / 64) % 64, 0x80 + code % 64)
  end
  return char(
    0xF0 + floor(code / 262144), 0x80 + floor(code / 4096) % 64,
    0x80 + floor(code / 64) % 64, 0x80 + code % 64
  )
end
box.utf8_of = utf8_of

local function hex4(r, at)
  local digits = sub(r.text, at, at + 3)
  if not find(digits, "^%x%x%x%x$") then
    bad(r, "invalid \\u escape")
  end
  return tonumber(digits, 16)
end

local function parse_unicode(r, at)
  local code = hex4(r, at)
  if code >= 0xD800 and code < 0xDC00 and sub(r.text, at + 4, at + 5) == "\\u" then
    local low = hex4(r, at + 6)
    if low >= 0xDC00 and low < 0xE000 then
      return utf8_of(0x10000 + (code - 0xD800) * 1024 + (low - 0xDC00)), at + 10
    end
  end
  return utf8_of((code >= 0xD800 and code < 0xE000) and 0xFFFD or code), at + 4
end

local function parse_string(r)
  local out, at = {}, r.at + 1
  while true do
    local mark = find(r.text, '["\\%c]', at)
    if not mark then
      bad(r, "unterminated string")
    end
    out[#out + 1] = sub(r.text, at, mark - 1)
    local c = sub(r.text, mark, mark)
    if c == '"' then
      r.at = mark + 1
      return concat(out)
    end
    local escape = sub(r.text, mark + 1, mark + 1)
    if c == "\\" and SHORT[escape] then
      out[#out + 1], at = SHORT[escape], mark + 2
    elseif c == "\\" and escape == "u" then
      out[#out + 1], at = parse_unicode(r, mark + 2)
    elseif c == "\127" then
      out[#out + 1], at = c, mark + 1
    else
      r.at = mark
      bad(r, "invalid character in string")
    end
  end
end

local function parse_number(r)
  local _, last = find(r.text, "^-?%d+%.?%d*[eE]?[+-]?%d*", r.at)
  local value = last and tonumber(sub(r.text, r.at, last))
  if not value then
    bad(r, "invalid character")
  end
  r.at = last + 1
  return value
end

local function separator(r, closing)
  skip(r)
  local c = sub(r.text, r.at, r.at)
  if c ~= "," and c ~= closing then
    bad(r, c == "" and "unexpected end of JSON input" or "invalid character")
  end
  r.at = r.at + 1
  return c == ","
end

local function is_empty(r, closing)
  r.at = r.at + 1
  skip(r)
  if sub(r.text, r.at, r.at) == closing then
    r.at = r.at + 1
    return true
  end
end

local function parse_list(r)
  local list = {}
  box.marks[list] = true
  if is_empty(r, "]") then
    return list
  end
  repeat
    list[#list + 1] = parse(r)
  until not separator(r, "]")
  return list
end

local function parse_map(r)
  local map = {}
  if is_empty(r, "}") then
    return map
  end
  repeat
    skip(r)
    if sub(r.text, r.at, r.at) ~= '"' then
      bad(r, "expected a string key")
    end
    local key = parse_string(r)
    skip(r)
    if sub(r.text, r.at, r.at) ~= ":" then
      bad(r, "expected ':'")
    end
    r.at = r.at + 1
    map[key] = parse(r)
  until not separator(r, "}")
  return map
end

local WORDS = { { "true", true }, { "false", false }, { "null", nil } }

local function parse_word(r)
  for _, word in pairs(WORDS) do
    if sub(r.text, r.at, r.at + #word[1] - 1) == word[1] then
      r.at = r.at + #word[1]
      return word[2]
    end
  end
  return parse_number(r)
end

function parse(r)
  skip(r)
  local c = sub(r.text, r.at, r.at)
  if c == '"' then
    return parse_string(r)
  elseif c == "" then
    bad(r, "unexpected end of JSON input")
  elseif c ~= "{" and c ~= "[" then
    return parse_word(r)
  end
  r.depth = r.depth + 1
  if r.depth > box.depth then
    bad(r, "nested too deeply")
  end
  local value = (c == "{" and parse_map or parse_list)(r)
  r.depth = r.depth - 1
  return value
end

local pcall = box.meter.safe.pcall

local function attempt(work)
  local ok, result = pcall(work)
  if ok then
    return result
  end
  if type(result) == "table" and result.unfit then
    return nil, result.unfit
  end
  error(result, 0)
end

box.modules.json = {
  decode = function(text)
    if type(text) ~= "string" then
      error("bad argument #1 to 'decode' (string expected, got " .. type(text) .. ")", 2)
    end
    return attempt(function()
      local r = { text = text, at = 1, depth = 0 }
      local value = parse(r)
      skip(r)
      if r.at <= #text then
        bad(r, "invalid character after top-level value")
      end
      return value
    end)
  end,
  encode = function(value)
    return attempt(function()
      return encode(value, "list", quote_bytes, function(why)
        error({ unfit = why }, 0)
      end)
    end)
  end,
}
