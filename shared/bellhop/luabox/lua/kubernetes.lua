-- The global functions Sveltos gives to scripts: base64, and reading labels, annotations and
-- resources without checking every level.

local box = ...

local S = box.library.string
local byte, char, sub, find, gsub = S.byte, S.char, S.sub, S.find, S.gsub
local type, select = type, select
local floor, concat = math.floor, table.concat
local want = box.want
local base = box.library.base

local ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
local letter, value = {}, {}
for index = 0, 63 do
  letter[index] = sub(ALPHABET, index + 1, index + 1)
  value[letter[index]] = index
end

local function encode(s)
  local out = {}
  for at = 1, #s, 3 do
    local a, b, c = byte(s, at, at + 2)
    local bits = a * 65536 + (b or 0) * 256 + (c or 0)
    out[#out + 1] = letter[floor(bits / 262144)]
      .. letter[floor(bits / 4096) % 64]
      .. (b and letter[floor(bits / 64) % 64] or "=")
      .. (c and letter[bits % 64] or "=")
  end
  return concat(out)
end

local function decode(s)
  s = gsub(s, "[\r\n]", "")
  local body, padding = #s, 0
  while padding < 2 and sub(s, body, body) == "=" do
    body, padding = body - 1, padding + 1
  end
  if #s % 4 ~= 0 or find(sub(s, 1, body), "[^%w%+/]") then
    return nil
  end
  local out = {}
  for at = 1, #s, 4 do
    local bits = 0
    for index = at, at + 3 do
      bits = bits * 64 + (value[sub(s, index, index)] or 0)
    end
    out[#out + 1] = char(floor(bits / 65536), floor(bits / 256) % 256, bits % 256)
  end
  local text = concat(out)
  return sub(text, 1, #text - padding)
end

base.base64Encode = want("base64Encode", { "string" }, function(s)
  if s == "" then
    return nil, "provided string is empty"
  end
  return encode(s)
end)

base.base64Decode = want("base64Decode", { "string" }, function(s)
  if s == "" then
    return nil, "provided string is empty"
  end
  local text = decode(s)
  if not text then
    return nil, "decoding failed"
  end
  return text
end)

local function reader(name, f)
  local checked = want(name, { "table", "string" }, f)
  base[name] = function(...)
    if select("#", ...) ~= 2 then
      return nil, "expected 2 arguments (table, key)"
    end
    return checked(...)
  end
end

local function from_metadata(part)
  return function(object, key)
    local metadata = object.metadata
    local map = type(metadata) == "table" and metadata[part]
    local found = type(map) == "table" and map[key]
    return type(found) == "string" and found or nil
  end
end

reader("getLabel", from_metadata("labels"))
reader("getAnnotation", from_metadata("annotations"))
reader("getResource", function(resources, key)
  return resources[key]
end)
