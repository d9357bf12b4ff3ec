# A network of its own, from nothing: private subnets for the functions, and a NAT gateway as their way
# to AWS' services, to API servers on the Internet, and to chart repositories. If your API servers are
# in a network that exists, pass its private subnets to the module instead, and delete this file.
#
# The functions depend on the whole way: the subnets' IDs come from the associations with the route
# table. So no function exists before its way out, and a refused destroy leaves it as it is.
resource "aws_vpc" "this" {
  cidr_block           = "10.20.0.0/16"
  enable_dns_hostnames = true
  tags                 = { Name = "bellhop-production" }
}

# Without Local Zones, which have neither functions nor NAT gateways of this kind.
data "aws_availability_zones" "here" {
  # checkov:skip=CKV_AWS_394:A new zone has the last letter, and the first two stay the first two.
  state = "available"

  filter {
    name   = "opt-in-status"
    values = ["opt-in-not-required"]
  }
}

# Without rules: nothing that is placed here by mistake is reachable.
resource "aws_default_security_group" "this" {
  vpc_id = aws_vpc.this.id
}

resource "aws_subnet" "private" {
  count = 2

  vpc_id            = aws_vpc.this.id
  cidr_block        = cidrsubnet(aws_vpc.this.cidr_block, 8, count.index)
  availability_zone = data.aws_availability_zones.here.names[count.index]
  tags              = { Name = "bellhop-production-${count.index}" }

  # Terraform destroys first what nothing depends on, also where the guard then refuses.
  depends_on = [aws_default_security_group.this]
}

resource "aws_subnet" "public" {
  vpc_id            = aws_vpc.this.id
  cidr_block        = cidrsubnet(aws_vpc.this.cidr_block, 8, 128)
  availability_zone = data.aws_availability_zones.here.names[0]
  tags              = { Name = "bellhop-production-public" }
}

resource "aws_internet_gateway" "this" {
  vpc_id = aws_vpc.this.id
  tags   = { Name = "bellhop-production" }
}

resource "aws_route_table" "public" {
  vpc_id = aws_vpc.this.id
  tags   = { Name = "bellhop-production-public" }

  route {
    cidr_block = "0.0.0.0/0"
    gateway_id = aws_internet_gateway.this.id
  }
}

resource "aws_route_table_association" "public" {
  subnet_id      = aws_subnet.public.id
  route_table_id = aws_route_table.public.id
}

# The address that API servers on the Internet see: they may allow only this one.
resource "aws_eip" "nat" {
  domain = "vpc"
  tags   = { Name = "bellhop-production" }

  depends_on = [aws_internet_gateway.this]
}

# One, in one zone: a second in the other zone costs as much again, and outlives the loss of this one.
resource "aws_nat_gateway" "this" {
  allocation_id = aws_eip.nat.id
  subnet_id     = aws_route_table_association.public.subnet_id
  tags          = { Name = "bellhop-production" }
}

resource "aws_route_table" "private" {
  vpc_id = aws_vpc.this.id
  tags   = { Name = "bellhop-production-private" }

  route {
    cidr_block     = "0.0.0.0/0"
    nat_gateway_id = aws_nat_gateway.this.id
  }
}

# Free, while a NAT gateway takes a price for each GB.
resource "aws_vpc_endpoint" "free" {
  for_each = toset(["dynamodb", "s3"])

  vpc_id          = aws_vpc.this.id
  service_name    = "com.amazonaws.${var.region}.${each.key}"
  route_table_ids = [aws_route_table.private.id]
  tags            = { Name = "bellhop-production-${each.key}" }
}

resource "aws_route_table_association" "private" {
  count = 2

  subnet_id      = aws_subnet.private[count.index].id
  route_table_id = aws_route_table.private.id

  depends_on = [aws_vpc_endpoint.free]
}

resource "aws_security_group" "functions" {
  # checkov:skip=CKV2_AWS_5:The module attaches it to functions.
  name        = "bellhop-production"
  description = "Functions of Bellhop, they call and nobody calls them"
  vpc_id      = aws_vpc.this.id

  # API servers listen on any port: EKS on 443, others often on 6443.
  egress {
    description = "API servers, chart repositories, and the services of AWS"
    from_port   = 0
    to_port     = 65535
    protocol    = "tcp"
    cidr_blocks = ["0.0.0.0/0"]
  }
}
